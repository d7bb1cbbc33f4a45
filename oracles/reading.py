"""Reading tensors: the exact values of the bits that a kernel was given or has written."""

from __future__ import annotations

import numpy
import torch
from numpy.typing import NDArray

_READABLE = (torch.float16, torch.bfloat16, torch.float32, torch.float64)


def exact_values(tensor: torch.Tensor) -> NDArray[numpy.float64]:
    """The numbers of a float tensor as float64, of the same shape: each of these dtypes goes into float64 exactly.

    Any strides, any device. Raises TypeError for a tensor that is not float16, bfloat16, float32 or float64.
    """
    if tensor.dtype not in _READABLE:
        raise TypeError(f"tensor is {tensor.dtype}; it must be one of {', '.join(str(dtype) for dtype in _READABLE)}")
    return tensor.detach().cpu().double().numpy()
