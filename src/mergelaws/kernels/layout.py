"""What the host knows of a tensor's layout: how wide its accesses and its offsets may be."""

from __future__ import annotations

import torch

from mergelaws.backend import INTERPRETED

_WIDEST_ACCESS = 16  # bytes
_ROOM = 1 << 20  # lanes past the last row compute offsets that nobody uses
_CONSTANT_WIDTHS = (8, 16, 32, 64)  # vectors of a row: D = 64, 128, 256, 512 in 16 bits


def vector_of(*tensors: torch.Tensor) -> int:
    """How many neighbouring elements one access may take in every one of the tensors: a power of two, up to 16 bytes."""
    vec = _WIDEST_ACCESS // tensors[0].element_size()
    for tensor in tensors:
        if tensor.shape[-1] > 1 and tensor.stride(-1) != 1:
            return 1
        start = tensor.data_ptr() // tensor.element_size()
        while any(number % vec for number in (tensor.shape[-1], start, *steps_of(tensor)[:-1])):
            vec //= 2
    return vec


def constant_width(vectors: int) -> int:
    """The kernel's constant VECTORS: usual widths are compiled in, others (0) are an argument, so that few are compiled."""
    return vectors if vectors in _CONSTANT_WIDTHS else 0


def strides_in_vectors(tensor: torch.Tensor, vec: int) -> tuple[int, ...]:
    """The strides of a tensor in vectors of `vec` elements, the last one from vector to vector."""
    *outer, last = steps_of(tensor)
    return (*(step // vec for step in outer), last if vec == 1 else 1)


def steps_of(tensor: torch.Tensor) -> tuple[int, ...]:
    """The strides of a tensor; 0 where a dimension has one entry, whose stride means nothing."""
    return tuple(stride if size > 1 else 0 for stride, size in zip(tensor.stride(), tensor.shape, strict=True))


def is_wide(*tensors: torch.Tensor, elements: int = 0) -> bool:
    """Whether an offset into one of the tensors, or into a contiguous one of that many elements, may pass 32 bits."""
    if INTERPRETED:  # it checks each operation in 32 bits for overflow, which makes it take five times as long
        return True
    return max(elements, *(max(tensor.numel(), _reach(tensor)) for tensor in tensors)) >= 2**31 - _ROOM


def _reach(tensor: torch.Tensor) -> int:
    return sum(step * (size - 1) for step, size in zip(steps_of(tensor), tensor.shape, strict=True))
