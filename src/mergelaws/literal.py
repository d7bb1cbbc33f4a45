"""A tensor as the Python expression that makes it again."""

from __future__ import annotations

import numpy
import torch

_REACH = 64  # elements of memory, within which a view is spelled out as a view


def literal(tensor: torch.Tensor) -> str:
    """The expression that makes the tensor again, its strides too where it is a small view."""
    tensor = tensor.detach().cpu()
    dtype = f", dtype={tensor.dtype}"
    if tensor.numel() == 0:
        return f"torch.empty({tuple(tensor.shape)}{dtype})"
    reach = 1 + sum((size - 1) * step for size, step in zip(tensor.shape, tensor.stride(), strict=True))
    if tensor.is_contiguous() or reach > _REACH:
        return f"torch.tensor({_nested(tensor.contiguous())}{dtype})"
    memory = tensor.as_strided((reach,), (1,), tensor.storage_offset())
    return f"torch.tensor({_nested(memory)}{dtype}).as_strided({tuple(tensor.shape)}, {tuple(tensor.stride())})"


def _nested(tensor: torch.Tensor) -> str:
    if tensor.dim() == 0:
        return _number(tensor)
    first = tensor.reshape(-1)[:1]
    if tensor.numel() > 8 and tensor.dim() == 1 and _same(tensor, first):  # a constant is said once
        return f"[{_number(first[0])}] * {tensor.numel()}"
    return "[" + ", ".join(_nested(part) for part in tensor) + "]"


def _same(tensor: torch.Tensor, first: torch.Tensor) -> bool:
    width = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}[tensor.element_size()]
    return bool((tensor.contiguous().view(width) == first.view(width)).all())


def _number(value: torch.Tensor) -> str:
    """The shortest decimal that is read as the same number."""
    if not value.is_floating_point():
        return str(value.item())
    if value.dtype == torch.float64:
        return repr(value.item())
    kind = numpy.float16 if value.dtype == torch.float16 else numpy.float32
    return str(kind(value.item()))
