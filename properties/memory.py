"""Guarded memory: tensors with poisoned zones around them, whose bytes are compared afterwards.

Inputs lie in guarded memory, so a read past their end meets NaN. Outputs that an implementation allocates through PyTorch
are given guarded memory as well and start as NaN, so an element that was not written shows, and so does a write beside it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

GUARD = 64  # elements on either side
ALIGNMENT = 16  # elements: what a vector load may want a tensor to start at a multiple of

_ALLOCATIONS = {
    torch.ops.aten.empty.memory_format,
    torch.ops.aten.empty_strided.default,
    torch.ops.aten.empty_like.default,
    torch.ops.aten.new_empty.default,
    torch.ops.aten.new_empty_strided.default,
}


class Guarded:
    """One tensor inside a poisoned buffer of its own."""

    def __init__(
        self,
        shape: Sequence[int],
        stride: Sequence[int],
        dtype: torch.dtype,
        device: torch.device | str,
        shift: int = 0,
    ) -> None:
        reach = 1 + sum((size - 1) * step for size, step in zip(shape, stride, strict=True)) if 0 not in shape else 0
        self._start = GUARD + shift
        self._buffer = torch.full((self._start + reach + GUARD,), _poison(dtype), dtype=dtype, device=device)
        self.tensor = self._buffer.as_strided(tuple(shape), tuple(stride), self._start)
        self._before: torch.Tensor | None = None

    @classmethod
    def copy_of(cls, tensor: torch.Tensor) -> Guarded:
        """A guarded tensor with the values, strides and alignment of `tensor`; expanded dimensions stay expanded."""
        shift = int(tensor.storage_offset()) % ALIGNMENT
        guarded = cls(tensor.shape, tensor.stride(), tensor.dtype, tensor.device, shift)
        once = tuple(slice(0, 1) if step == 0 else slice(None) for step in tensor.stride())
        guarded.tensor[once].copy_(tensor[once])
        return guarded

    def remember(self) -> None:
        """Keeps the bytes of the whole buffer, to be compared after the call."""
        self._before = self._buffer.clone()

    def changed(self) -> bool:
        """Whether any byte of the buffer, the tensor's own included, differs from what was remembered."""
        assert self._before is not None
        return not _same_bytes(self._buffer, self._before)

    def changed_outside(self) -> bool:
        """Whether a byte that is not the tensor's own is no longer poison."""
        outside = torch.ones(self._buffer.shape, dtype=torch.bool, device=self._buffer.device)
        outside.as_strided(self.tensor.shape, self.tensor.stride(), self._start).fill_(False)
        kept = torch.full_like(self._buffer, _poison(self._buffer.dtype))
        return not _same_bytes(self._buffer[outside], kept[outside])


class GuardedAllocations(TorchDispatchMode):
    """Within the block, memory that PyTorch allocates without a value is guarded and starts as NaN."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.given: list[Guarded] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        if func not in _ALLOCATIONS or result.numel() == 0 or not result.is_floating_point():
            return result
        guarded = Guarded(result.shape, result.stride(), result.dtype, result.device)
        self.given.append(guarded)
        return guarded.tensor

    def overrun(self) -> bool:
        """Whether anything was written beside one of the tensors that were given out."""
        return any(guarded.changed_outside() for guarded in self.given)


def _poison(dtype: torch.dtype) -> float | int | bool:
    if dtype.is_floating_point:
        return float("nan")
    return True if dtype == torch.bool else torch.iinfo(dtype).max


def _same_bytes(a: torch.Tensor, b: torch.Tensor) -> bool:
    return torch.equal(a.view(torch.uint8), b.view(torch.uint8))
