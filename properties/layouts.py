"""Layouts: views of the same numbers with other strides, as callers make them."""

from __future__ import annotations

import torch

LAYOUTS = (
    "contiguous",
    "padded",
    "stepped",
    "transposed",
    "reversed",
    "misaligned",
    "expanded rows",
    "expanded heads",
    "expanded columns",
)


def laid_out(tensor: torch.Tensor, layout: str) -> torch.Tensor:
    """A view with `layout` of a tensor of the shape of `tensor`; the numbers are its own, but for expanded dimensions.

    padded: a slice of a wider last dimension. stepped: every other element of each dimension. transposed: the first two
    dimensions swapped in memory. reversed: all dimensions in the opposite order. misaligned: one element off.
    expanded: the first row, last-but-one dimension or last dimension repeated with stride 0.
    """
    if layout == "contiguous" or tensor.numel() == 0:
        return tensor.contiguous()
    if layout == "padded":
        wide = tensor.new_full((*tensor.shape[:-1], tensor.shape[-1] + 3), float("nan"))
        view = wide[..., 1:-2]
    elif layout == "stepped":
        wide = tensor.new_full(tuple(2 * size for size in tensor.shape), float("nan"))
        view = wide[tuple(slice(None, None, 2) for _ in tensor.shape)]
    elif layout == "transposed":
        view = tensor.transpose(0, 1).contiguous().transpose(0, 1)
    elif layout == "reversed":
        order = tuple(reversed(range(tensor.ndim)))
        view = tensor.permute(order).contiguous().permute(order)
    elif layout == "misaligned":
        view = tensor.new_full((tensor.numel() + 1,), float("nan"))[1:].view(tensor.shape)
    else:
        at = {"expanded rows": 0, "expanded heads": max(0, tensor.ndim - 2), "expanded columns": tensor.ndim - 1}[
            layout
        ]
        return tensor.narrow(at, 0, 1).contiguous().expand(tensor.shape)
    return view.copy_(tensor)
