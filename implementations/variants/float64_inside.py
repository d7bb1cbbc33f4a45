"""float64 from the first subtraction to the last sum; v and s are rounded once, when they are stored."""

from __future__ import annotations

import math

from torch import Tensor

from implementations.torch_reference import TorchMerge, offered


class Float64Inside(TorchMerge):
    """The formula with every step in float64."""

    def weights(self, s: Tensor, m: Tensor, empty: Tensor, base: int | str) -> Tensor:
        return super().weights(s.double(), m.double(), empty, base)

    def exponential(self, x: Tensor, base: int | str) -> Tensor:
        return (x if base == "e" else x * math.log(2.0)).exp()

    def logarithm(self, d: Tensor, base: int | str) -> Tensor:
        return d.log() if base == "e" else d.log2()

    def products(self, w: Tensor, v: Tensor, empty: Tensor) -> Tensor:
        return (w[..., None] * v.double()).masked_fill(empty[..., None], -0.0)

    def lse(self, m: Tensor, d: Tensor, base: int | str) -> Tensor:
        return super().lse(m.double(), d, base).float()


implementation = offered("float64-inside", Float64Inside())
