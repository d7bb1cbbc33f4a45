"""Launching a kernel on the device of its tensors: interpreted, compiled by Triton, or straight from what it compiled."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import numpy
import torch
import triton

from mergelaws.backend import INTERPRETED

# Triton's own dispatch costs about 20 us a launch. The entry point below it is private, so it is used with the version
# that it was read in, and any other version goes the public way.
ENTRY_POINT_IS_KNOWN = triton.__version__.startswith("3.6.")


class Launch:
    """A kernel with everything that its launches share: the grid, the numbers and the constants, but not the tensors.

    The tensors come first in the kernel's signature, then the numbers, then the constants. `on` says which of a merge's
    tensors they are. A launch whose constant OVERLAPS is true may be set up before the one ahead of it has ended.
    """

    def __init__(
        self,
        kernel: Any,
        grid: tuple[int, ...],
        on: tuple[int, ...],
        numbers: tuple[float, ...],
        constants: dict[str, Any],
        warps: int,
    ) -> None:
        self.on, self._pick = on, operator.itemgetter(*on)
        names = kernel.arg_names[len(on) + len(numbers) :]
        self.constants = {name: constants[name] for name in names}
        self._options = {"num_warps": warps} | ({"launch_pdl": True} if constants["OVERLAPS"] else {})
        self.kernel, self._grid, self._numbers = kernel, grid, numbers
        self._grid3 = (*grid, 1, 1)[:3]
        self._entry: Any = None  # Triton's compiled entry point, once there is one
        self._head: tuple[Any, ...] = ()
        self._tail: tuple[Any, ...] = ()

    def run(self, device: torch.device, *tensors: torch.Tensor) -> None:
        """Launches on `tensors`, in the current stream of `device`."""
        if INTERPRETED:
            with numpy.errstate(
                all="ignore"
            ):  # NumPy warns where IEEE 754 has an answer, and the kernels use that answer
                self.kernel[self._grid](*tensors, *self._numbers, **self.constants)
        elif device.index == torch.cuda.current_device():
            self._compile_and_run(tensors)
        else:
            with torch.cuda.device(device):
                self._compile_and_run(tensors)

    @property
    def is_direct(self) -> bool:
        """Whether `run_at` may be called, which a `run` may have brought about."""
        return self._entry is not None

    def run_at(self, stream: int, addresses: Sequence[int]) -> None:
        """Launches in `stream` of the current device on those of a merge's tensors, at `addresses`, that `on` says."""
        self._entry(*self._grid3, stream, *self._head, *self._pick(addresses), *self._tail)

    def _compile_and_run(self, tensors: tuple[torch.Tensor, ...]) -> None:
        compiled = self.kernel[self._grid](*tensors, *self._numbers, **self.constants, **self._options)
        if not ENTRY_POINT_IS_KNOWN or compiled is None:
            return
        launcher = compiled.run
        if launcher.global_scratch_size or launcher.profile_scratch_size:
            return
        self._head = (
            compiled.function, launcher.launch_cooperative_grid, launcher.launch_pdl, None, None,
            compiled.packed_metadata, None, None, None,
        )  # fmt: skip
        self._tail = (*self._numbers, *self.constants.values())
        self._entry = launcher.launch


def stream_of(tensor: torch.Tensor) -> int | None:
    """The current stream of a CUDA tensor's device, for `run_at`; None where that may not be called.

    That is on another device than the current one, and while a profiler wants to hear of launches, which only Triton's own
    dispatch tells it.
    """
    index = tensor.get_device()
    if index != torch._C._cuda_getDevice() or _RUNTIME.launch_enter_hook.calls or _RUNTIME.launch_exit_hook.calls:
        return None
    return int(torch._C._cuda_getCurrentRawStream(index))


_RUNTIME: Any = getattr(getattr(triton, "knobs", None), "runtime", None)
