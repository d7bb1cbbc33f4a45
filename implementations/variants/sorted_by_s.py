"""States are summed from the lightest to the heaviest, whatever order they come in."""

from __future__ import annotations

from torch import Tensor

from implementations.torch_reference import State, TorchMerge, offered


class SortedByS(TorchMerge):
    """States of one s keep their order among themselves."""

    def merge(self, v: Tensor, s: Tensor, base: int | str) -> State:
        s, order = s.sort(dim=1, stable=True)
        return super().merge(v.take_along_dim(order[..., None], dim=1), s, base)


implementation = offered("sorted-by-s", SortedByS())
