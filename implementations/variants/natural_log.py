"""Base e throughout: exp and ln of PyTorch in float32, no conversion anywhere."""

from __future__ import annotations

from torch import Tensor

from implementations.torch_reference import TorchMerge, offered


class NaturalLog(TorchMerge):
    """Takes s in base e alone: float32 has no base 2 without a rounding of its own."""

    def exponential(self, x: Tensor, base: int | str) -> Tensor:
        return x.exp()

    def logarithm(self, d: Tensor, base: int | str) -> Tensor:
        return d.log()


implementation = offered("natural-log", NaturalLog(), lse_base="e")
