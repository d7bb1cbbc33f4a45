"""Sums by a tree: neighbours are added, then neighbouring pairs, until one sum is left."""

from __future__ import annotations

import torch
from torch import Tensor

from implementations.torch_reference import TorchMerge, offered
from mergelaws.implementation import BITWISE_CLAIMS


class PairwiseTree(TorchMerge):
    """An empty state between two others moves the neighbours, so "padding" is not claimed bit for bit."""

    def total(self, terms: Tensor) -> Tensor:
        while terms.shape[1] > 1:
            even = terms.shape[1] // 2 * 2
            terms = torch.cat((terms[:, 0:even:2] + terms[:, 1:even:2], terms[:, even:]), dim=1)
        return terms[:, 0]


implementation = offered("pairwise-tree", PairwiseTree(), bitwise=frozenset(BITWISE_CLAIMS) - {"padding"})
