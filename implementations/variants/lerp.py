"""Two states by linear interpolation from the heavier one: v = v_h + p (v_l - v_h), p = w / (1 + w) <= 1/2.

From the lighter one the difference would carry the rounding error of a v that hardly counts.
"""

from __future__ import annotations

import torch
from torch import Tensor

from implementations.torch_reference import State, TorchMerge, offered
from mergelaws.implementation import BITWISE_CLAIMS


class Lerp(TorchMerge):
    """Offers the two-state operations: a fold of interpolations rounds four times a state, the bound allows one.

    Of two equal s neither is the heavier, and from which one the interpolation starts shows in the last bit:
    "commutative" is not claimed bit for bit.
    """

    def merge(self, v: Tensor, s: Tensor, base: int | str) -> State:
        empty = self.empties(s)
        second = (s[:, 1] > s[:, 0])[:, None]
        order = torch.cat((second, ~second), dim=1).long()  # [S, 2, H], the heavier first
        heavy, light = s.take_along_dim(order, dim=1).unbind(dim=1)
        v_heavy, v_light = v.take_along_dim(order[..., None], dim=1).float().unbind(dim=1)
        w = self.exponential(light - heavy, base)
        between = (w / (1.0 + w))[..., None] * (v_light - v_heavy)
        poison = (s.isnan() | s.isposinf()).any(dim=1)
        v_new = self.rounded((v_heavy + between).masked_fill(poison[..., None], torch.nan), v.dtype)
        s_new = (heavy + self.logarithm(1.0 + w, base)).masked_fill(poison, torch.nan)
        return self.settle(v, s, empty, self.one_nan(v_new), self.one_nan(s_new))


implementation = offered(
    "lerp",
    Lerp(),
    merge_states=None,
    variable_length_merge_states=None,
    bitwise=frozenset(BITWISE_CLAIMS) - {"commutative"},
)
