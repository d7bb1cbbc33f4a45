"""The checks of the public operations: each error names the argument, what it was and what it must be.

Wrong types and dtypes are TypeErrors, everything else is a ValueError. Nothing has been written when one is raised.
"""

from __future__ import annotations

from typing import Any

import numpy
import torch

from mergelaws.backend import DEVICE_TYPE

V_DTYPES = (torch.float16, torch.bfloat16, torch.float32)
_FLOATS = "torch.float16, torch.bfloat16 or torch.float32"


def natural_base(lse_base: int | str) -> bool:
    """Whether `lse_base` is "e" rather than 2."""
    if isinstance(lse_base, str) and lse_base == "e":
        return True
    if isinstance(lse_base, int) and not isinstance(lse_base, bool) and lse_base == 2:
        return False
    raise ValueError(f"lse_base is {lse_base!r}; it must be 2 or 'e'")


def check_v(name: str, v: Any, layout: str) -> None:
    """v must be a float tensor of the dimensions that `layout` spells, D at least 1, on the device that kernels run on."""
    _check_tensor(name, v)
    if v.dtype not in V_DTYPES:
        raise TypeError(f"{name} is {v.dtype}; it must be {_FLOATS}")
    if v.ndim != layout.count(",") + 1:
        raise ValueError(
            f"{name} has shape {tuple(v.shape)}; it must have the {layout.count(',') + 1} dimensions {layout}"
        )
    if v.shape[-1] == 0:
        raise ValueError(f"{name} has shape {tuple(v.shape)}; its last dimension, the head size D, must be at least 1")
    if v.device.type != DEVICE_TYPE:
        where = "a CUDA device" if DEVICE_TYPE == "cuda" else "the CPU, where Triton's interpreter runs the kernels"
        raise ValueError(f"{name} is on {v.device}; it must be on {where}")


def check_s(name: str, s: Any, v_name: str, v: torch.Tensor) -> None:
    """s must be float32, of the shape of v without its last dimension, on v's device."""
    _check_tensor(name, s)
    if s.dtype != torch.float32:
        raise TypeError(f"{name} is {s.dtype}; it must be torch.float32")
    if s.shape != v.shape[:-1]:
        raise ValueError(
            f"{name} has shape {tuple(s.shape)}; it must be {tuple(v.shape[:-1])}, the shape of {v_name} without D"
        )
    _check_device(name, s, v_name, v)


def check_pair(name: str, other: Any, v_name: str, v: torch.Tensor) -> None:
    """The second v must have the dtype, shape and device of the first."""
    _check_tensor(name, other)
    if other.dtype != v.dtype:
        raise TypeError(f"{name} is {other.dtype}; it must be {v.dtype}, the dtype of {v_name}")
    if other.shape != v.shape:
        raise ValueError(f"{name} has shape {tuple(other.shape)}; it must be {tuple(v.shape)}, the shape of {v_name}")
    _check_device(name, other, v_name, v)


def check_mask(mask: Any, v: torch.Tensor) -> None:
    """mask must be None or a bool tensor [S] on v's device."""
    if mask is None:
        return
    _check_tensor("mask", mask)
    if mask.dtype != torch.bool:
        raise TypeError(f"mask is {mask.dtype}; it must be torch.bool")
    if mask.shape != v.shape[:1]:
        raise ValueError(f"mask has shape {tuple(mask.shape)}; it must be {tuple(v.shape[:1])}, one entry per row of v")
    _check_device("mask", mask, "v", v)


def check_indptr(indptr: Any, v: torch.Tensor) -> None:
    """indptr must be an int32 or int64 tensor [S + 1] on v's device."""
    _check_tensor("indptr", indptr)
    if indptr.dtype not in (torch.int32, torch.int64):
        raise TypeError(f"indptr is {indptr.dtype}; it must be torch.int32 or torch.int64")
    if indptr.ndim != 1 or indptr.shape[0] == 0:
        raise ValueError(f"indptr has shape {tuple(indptr.shape)}; it must be [S + 1], with at least one entry")
    _check_device("indptr", indptr, "v", v)


def check_writable(outputs: dict[str, torch.Tensor], inputs: dict[str, torch.Tensor]) -> None:
    """An output may be the very same view as an input; it may not share memory in any other way, nor with itself."""
    for name, out in outputs.items():
        if _overlaps_itself(out):
            raise ValueError(
                f"{name} has strides {out.stride()} for shape {tuple(out.shape)}; its elements must not overlap"
            )
        for other_name, other in (outputs | inputs).items():
            if other is out or other.untyped_storage().data_ptr() != out.untyped_storage().data_ptr():
                continue
            if _is_same_view(out, other) and other_name not in outputs:
                continue
            if numpy.shares_memory(_Footprint.of(out), _Footprint.of(other)):
                raise ValueError(f"{name} shares memory with {other_name}; it must be separate, or the very same view")


def _check_tensor(name: str, value: Any) -> None:
    if not isinstance(value, torch.Tensor):
        raise TypeError(f"{name} is {type(value).__name__}; it must be a torch.Tensor")
    if value.layout != torch.strided:
        raise TypeError(f"{name} has the layout {value.layout}; it must be torch.strided")
    if not torch.compiler.is_compiling():
        _check_memory(name, value)


def _check_memory(name: str, tensor: torch.Tensor) -> None:
    """What is at the tensor's addresses must be its elements; kernels see nothing else of it."""
    if tensor.is_neg():
        raise ValueError(f"{name} is a view that negates lazily; it must be resolved, with {name}.resolve_neg()")
    if tensor.numel() == 0 or tensor.device.type == "meta":
        return
    steps = sum(stride * (size - 1) for stride, size in zip(tensor.stride(), tensor.shape, strict=True))
    needed = (tensor.storage_offset() + steps + 1) * tensor.element_size()
    held = tensor.untyped_storage().nbytes() if tensor.data_ptr() else 0
    if held < needed:
        raise ValueError(f"{name} has {held} bytes of memory; it must have {needed}, to its last element")


def _check_device(name: str, tensor: torch.Tensor, other_name: str, other: torch.Tensor) -> None:
    if tensor.device != other.device:
        raise ValueError(f"{name} is on {tensor.device}; it must be on {other.device}, the device of {other_name}")


def _is_same_view(a: torch.Tensor, b: torch.Tensor) -> bool:
    return a.data_ptr() == b.data_ptr() and a.shape == b.shape and a.stride() == b.stride() and a.dtype == b.dtype


def _overlaps_itself(tensor: torch.Tensor) -> bool:
    """Whether two indices may address one element: sorted by stride, a dimension must step over all smaller ones."""
    reach = 1
    for stride, size in sorted(zip(tensor.stride(), tensor.shape, strict=True)):
        if size > 1:
            if stride < reach:
                return tensor.numel() > 0
            reach += stride * (size - 1)
    return False


class _Footprint:
    """The memory of a tensor as NumPy's array interface; NumPy compares the addresses and reads nothing."""

    def __init__(self, tensor: torch.Tensor) -> None:
        size = tensor.element_size()
        self.__array_interface__ = {
            "data": (tensor.data_ptr(), True),
            "shape": tuple(tensor.shape),
            "strides": tuple(stride * size for stride in tensor.stride()),
            "typestr": f"|V{size}",
            "version": 3,
        }

    @staticmethod
    def of(tensor: torch.Tensor) -> Any:
        """An array over the addresses of `tensor`."""
        return numpy.asarray(_Footprint(tensor))
