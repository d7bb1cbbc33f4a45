"""What is kept of earlier calls, so that a repeated call costs little on the host: its plan, and how to know its like.

A call is like another one if its tensors agree in all that the checks of the public operations and the plans look at: type,
dtype, device, shape, strides, the kind of view, and the alignment of v. Only calls that passed the checks are kept, so a
call that is recognised needs no check but these: that its tensors' memory holds them, and what their values ask for.

PyTorch's compiler asks the same before it runs what it compiled, of all tensors in one step. Its guard is private, as is its
way to allocate. Where PyTorch has them no more, or `launching` does not know Triton's entry point, nothing is kept.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from mergelaws.kernels.plan import Plan

_PRIVATE: Any = torch._C._dynamo.guards if hasattr(torch._C, "_dynamo") else None
_guard_of: Any = getattr(_PRIVATE, "TensorGuards", None)
empty_on_cuda: Any = getattr(_PRIVATE, "_empty_strided_cuda", None)  # (sizes, strides, dtype): on the current device

Key = tuple[object, ...]

ALIGNMENT = 15  # an access takes 16 bytes at most
MOST = 4096


class Kept:
    """A call's plans, by what decides between them; its tensors' reach: bytes from the first element to behind the last."""

    __slots__ = ("_alignment", "is_like", "plans", "reach")

    def __init__(self, tensors: Sequence[torch.Tensor], values: Sequence[torch.Tensor]) -> None:
        """tensors: all of the call, none of them empty; values: those of them whose alignment a plan depends on."""
        sizes: Any = [list(tensor.shape) for tensor in tensors]
        strides: Any = [list(tensor.stride()) for tensor in tensors]
        guard = _guard_of(*tensors, dynamic_dims_sizes=sizes, dynamic_dims_strides=strides)
        self.is_like: Any = guard.check
        self._alignment = alignment_of(*(tensor.data_ptr() for tensor in values))
        self.reach = tuple(_reach(tensor) for tensor in tensors)
        self.plans: dict[object, Plan] = {}

    def is_aligned(self, *addresses: int) -> bool:
        """Whether the values are aligned as those of the kept call were."""
        return alignment_of(*addresses) == self._alignment


_KEPT: dict[Key, list[Kept]] = {}
_NONE: list[Kept] = []


def calls_under(key: Key) -> list[Kept]:
    """The kept calls of a key, which must tell most calls apart: the operation, its base, the shape of v."""
    return _KEPT.get(key, _NONE)


def keep(key: Key, tensors: Sequence[torch.Tensor], values: Sequence[torch.Tensor], plan: Plan, kind: object) -> None:
    """Keeps the plan of a call that passed all checks, if it can be run again at other addresses."""
    if (
        _guard_of is None
        or empty_on_cuda is None
        or not plan.is_direct
        or any(type(tensor) is not torch.Tensor for tensor in tensors)
    ):
        return
    addresses = [tensor.data_ptr() for tensor in values]
    found = next((one for one in calls_under(key) if one.is_like(*tensors) and one.is_aligned(*addresses)), None)
    if found is None:
        found = Kept(tensors, values)
        if not found.is_like(*tensors):  # the guard takes no tensor twice
            return
        if sum(map(len, _KEPT.values())) >= MOST:
            _KEPT.clear()
        _KEPT.setdefault(key, []).append(found)
    found.plans[kind] = plan


def forget() -> None:
    """Drops all: the next call of any shape makes its own plan."""
    _KEPT.clear()


def is_anything() -> bool:
    """Whether any call is kept."""
    return bool(_KEPT)


def alignment_of(*addresses: int) -> int:
    """How addresses lie to the widest access, in one number."""
    together = 0
    for address in addresses:
        together = together << 4 | address & ALIGNMENT
    return together


def holds(tensor: torch.Tensor, address: int, reach: int) -> bool:
    """Whether the memory of a tensor at `address` holds `reach` bytes from there on: not if it was freed, or cut."""
    memory = tensor.untyped_storage()
    return address + reach <= memory.data_ptr() + memory.nbytes()


def _reach(tensor: torch.Tensor) -> int:
    elements = 1 + sum(stride * (size - 1) for stride, size in zip(tensor.stride(), tensor.shape, strict=True))
    return elements * tensor.element_size()
