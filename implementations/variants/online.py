"""One pass: a running maximum, a running sum of weights and a running sum of weighted values.

Each state raises the maximum or not; what was summed before is scaled down by what the maximum rose. Milakov and
Gimelshein, "Online normalizer calculation for softmax", 2018.
"""

from __future__ import annotations

import torch
from torch import Tensor

from implementations.torch_reference import State, TorchMerge, offered


class Online(TorchMerge):
    """N - 1 exponentials are multiplied to weigh the first state, which is what `exp_chain` None claims."""

    def merge(self, v: Tensor, s: Tensor, base: int | str) -> State:
        if s.shape[1] == 0:
            return super().merge(v, s, base)
        empty = self.empties(s)
        m, d, total = s[:, 0], (~empty[:, 0]).float(), v[:, 0].float().masked_fill(empty[:, 0, :, None], -0.0)
        for i in range(1, s.shape[1]):
            higher = torch.maximum(m, s[:, i])
            kept = torch.where(m == higher, 1.0, self.exponential(m - higher, base))
            w = self.exponential(s[:, i] - higher, base).masked_fill(empty[:, i], 0.0)
            term = (w[..., None] * v[:, i].float()).masked_fill(empty[:, i, :, None], -0.0)
            m, d, total = higher, d * kept + w, total * kept[..., None] + term
        poison = (s.isnan() | s.isposinf()).any(dim=1)
        v_new = self.rounded(self.quotient(total, d).masked_fill(poison[..., None], torch.nan), v.dtype)
        s_new = self.lse(m, d, base).masked_fill(poison, torch.nan)
        return self.settle(v, s, empty, self.one_nan(v_new), self.one_nan(s_new))


implementation = offered("online", Online())
