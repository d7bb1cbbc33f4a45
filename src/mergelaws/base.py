"""Changing the base of the log-sum-exp: natural logarithms to base 2 and back.

    s = log2 sum exp(x) = lse / ln 2;    lse = ln sum exp(x) = s * ln 2

Each conversion is computed in float64 and rounded once, so there and back again stays within 2 ulp. -inf and NaN are
kept. A natural LSE above 2.35e38 has no float32 form in base 2 and becomes +inf, as the rounding of IEEE 754 has it.
"""

from __future__ import annotations

import math

import torch


def to_natural(s: torch.Tensor) -> torch.Tensor:
    """The natural-log form of a base-2 LSE; float32 in and out, any shape. Raises TypeError for another dtype."""
    return _scaled("s", s, math.log(2.0))


def to_base2(lse: torch.Tensor) -> torch.Tensor:
    """The base-2 form of a natural-log LSE; float32 in and out, any shape. Raises TypeError for another dtype."""
    return _scaled("lse", lse, 1.0 / math.log(2.0))


def from_flash_attention_2(lse: torch.Tensor) -> torch.Tensor:
    """The base-2 LSE of FlashAttention-2's natural-log one, in which +inf marks a row without keys (flash-attention#978).

    +inf becomes -inf, the LSE of an empty state; everything else is converted as `to_base2` does. Float32, any shape.
    Raises TypeError for another dtype.
    """
    s = to_base2(lse)
    return torch.where(lse == math.inf, -math.inf, s)


def _scaled(name: str, value: torch.Tensor, factor: float) -> torch.Tensor:
    if not isinstance(value, torch.Tensor):
        raise TypeError(f"{name} is {type(value).__name__}; it must be a torch.Tensor")
    if value.dtype != torch.float32:
        raise TypeError(f"{name} is {value.dtype}; it must be torch.float32")
    return (value.double() * factor).float()
