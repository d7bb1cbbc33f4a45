"""A plan: the launches of one merge, in order, and the scratch memory between them."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from mergelaws.kernels.launching import Launch


class Plan:
    """Launches, numbering their tensors as the merge's arguments, then its outputs, then its scratch.

    The scratch are float32 vectors of `scratch` elements. A plan may be run again on other tensors of the same dtypes,
    shapes, strides and alignment.
    """

    def __init__(self, launches: tuple[Launch, ...], scratch: tuple[int, ...] = ()) -> None:
        self.launches, self._scratch = launches, scratch
        self._starts = [sum(_padded(size) for size in scratch[:i]) for i in range(len(scratch) + 1)]

    def run(self, *tensors: torch.Tensor) -> None:
        """Launches on `tensors`, in the current stream of their device."""
        device, memory = tensors[0].device, tensors
        if self._scratch:
            buffer = torch.empty(self._starts[-1], dtype=torch.float32, device=device)
            memory += tuple(buffer[at : at + size] for at, size in zip(self._starts, self._scratch, strict=False))
        for launch in self.launches:
            launch.run(device, *(memory[i] for i in launch.on))

    @property
    def is_direct(self) -> bool:
        """Whether `run_at` may be called, which a `run` may have brought about."""
        return bool(self.launches) and all(launch.is_direct for launch in self.launches)

    def run_at(self, stream: int, addresses: Sequence[int], like: torch.Tensor) -> None:
        """Launches on tensors at `addresses`, as an earlier `run` did, in `stream` of the current device.

        Needs `is_direct`. Scratch is allocated beside the float32 tensor `like`.
        """
        if self._scratch:
            buffer = like.new_empty(self._starts[-1])
            start = buffer.data_ptr()
            addresses = [*addresses, *[start + 4 * at for at in self._starts]]
        for launch in self.launches:
            launch.run_at(stream, addresses)


def _padded(size: int) -> int:
    """Scratch vectors begin at multiples of 16 bytes."""
    return -(-size // 4) * 4
