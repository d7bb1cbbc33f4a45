"""What one writes down first: torch.softmax and torch.logsumexp over the states, in base e."""

from __future__ import annotations

import math

from torch import Tensor

from implementations.torch_reference import State, TorchMerge, offered


class PlainTorch(TorchMerge):
    """PyTorch's sums choose their order by the shape of the tensor, so "batch" and "padding" are not claimed."""

    def merge(self, v: Tensor, s: Tensor, base: int | str) -> State:
        if s.shape[1] == 0:
            return super().merge(v, s, base)
        empty = self.empties(s)
        weighted = s.softmax(dim=1)[..., None] * v.float().masked_fill(empty[..., None], 0.0)
        poison = (s.isnan() | s.isposinf()).any(dim=1)
        v_new = self.rounded(weighted.sum(dim=1).masked_fill(poison[..., None], math.nan), v.dtype)
        s_new = s.logsumexp(dim=1).masked_fill(poison, math.nan)
        return self.settle(v, s, empty, self.one_nan(v_new), self.one_nan(s_new))


implementation = offered(
    "plain-torch",
    PlainTorch(),
    lse_base="e",
    bitwise=frozenset({"identity", "commutative", "shift", "scale", "layout", "in_place", "repeat"}),
)
