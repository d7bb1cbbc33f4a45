"""Weights are divided by their sum before they meet v, so that no partial sum is larger than the largest |v|."""

from __future__ import annotations

from torch import Tensor

from implementations.torch_reference import TorchMerge, offered
from mergelaws.implementation import BITWISE_CLAIMS


class NormaliseFirst(TorchMerge):
    """Half of the least float32 is none, so "doubling" is not claimed bit for bit."""

    def products(self, w: Tensor, v: Tensor, empty: Tensor) -> Tensor:
        return super().products(w / self.total(w)[:, None], v, empty)

    def quotient(self, numerator: Tensor, d: Tensor) -> Tensor:
        return numerator


implementation = offered("normalise-first", NormaliseFirst(), bitwise=frozenset(BITWISE_CLAIMS) - {"doubling"})
