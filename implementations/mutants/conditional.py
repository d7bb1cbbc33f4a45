"""Faults that show for some inputs only: right everywhere else, to the last bit."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from implementations.torch_reference import State, TorchMerge

U = 2.0**-24


class LargeSLosesItsLogarithm(TorchMerge):
    """From |s| = 1e4 on the logarithm of the sum of the weights is left out as negligible.

    Source: flashinfer#4450 (the class: large |s|).
    """

    def lse(self, m: Tensor, d: Tensor, base: int | str) -> Tensor:
        return torch.where(m.abs() > 1e4, m, super().lse(m, d, base))


class DeepSTruncated(TorchMerge):
    """Below s = -100 the differences are taken to whole numbers, as an integer fast path would.

    Source: mutation; a range that random s never reaches.
    """

    def weights(self, s: Tensor, m: Tensor, empty: Tensor, base: int | str) -> Tensor:
        return super().weights(torch.where(m[:, None] < -100.0, s.round(), s), m, empty, base)


class EqualSTakesTheFirst(TorchMerge):
    """Where all s are equal the heaviest state is 'the' state: v of the first, s without its logarithm.

    Source: rocm-libraries#12227 (idempotence taken for granted).
    """

    def merge(self, v: Tensor, s: Tensor, base: int | str) -> State:
        v_new, s_new = super().merge(v, s, base)
        if s.shape[1] < 2:
            return v_new, s_new
        same = (s == s[:, :1]).all(dim=1) & s[:, 0].isfinite()
        return torch.where(same[..., None], v[:, 0], v_new), torch.where(same, s[:, 0], s_new)


class EqualStatesMergedOnce(TorchMerge):
    """Where s and v of all states are equal the state is returned as it is, as if its keys had been counted twice.

    Source: rocm-libraries#12227.
    """

    def merge(self, v: Tensor, s: Tensor, base: int | str) -> State:
        v_new, s_new = super().merge(v, s, base)
        if s.shape[1] < 2:
            return v_new, s_new
        same = (s == s[:, :1]).all(dim=1) & (v == v[:, :1]).all(dim=-1).all(dim=1)
        return v_new, torch.where(same, s[:, 0], s_new)


class ConstantVScaled(TorchMerge):
    """Where all states agree in v, weights that do not sum to one show: the result is 2^-7 too small. Only there.

    Source: flashinfer#3838, FlyDSL#1020.
    """

    def merge(self, v: Tensor, s: Tensor, base: int | str) -> State:
        v_new, s_new = super().merge(v, s, base)
        if s.shape[1] < 2:
            return v_new, s_new
        constant = (v == v[:, :1]).all(dim=1) & ((~self.empties(s)).sum(dim=1) > 1)[..., None]
        return torch.where(constant, v_new * (1.0 - 2.0**-7), v_new), s_new


class LaterColumnsInTheDtypeOfV(TorchMerge):
    """Columns from 64 on are accumulated in the dtype of v, by the tail of a loop over tiles of columns.

    Source: semantics, section 2 (arithmetic is float32).
    """

    def products(self, w: Tensor, v: Tensor, empty: Tensor) -> Tensor:
        products = super().products(w, v, empty)
        products[..., 64:] = products[..., 64:].to(v.dtype).float()
        return products


class _BoundsOff(TorchMerge):
    bounds = 0.0

    def merge(self, v: Tensor, s: Tensor, base: int | str) -> State:
        v_new, s_new = super().merge(v, s, base)
        if s.shape[1] < 2:
            return v_new, s_new
        exact, bound, _, _ = merge_with_bounds(v, s, base)
        wrong = (exact + self.bounds * bound).to(v.dtype)
        chosen = (torch.arange(v_new.numel(), device=v.device) % 64 == 37).view(v_new.shape)
        chosen &= ((~self.empties(s)).sum(dim=1) > 1)[..., None] & wrong.isfinite()
        return torch.where(chosen, wrong, v_new), s_new


class FourBoundsOff(_BoundsOff):
    """One element of v in 64 is wrong by four times the error that numerics.md allows.

    Source: numerics, 'How sharp'.
    """

    bounds = 4.0


class TwoBoundsOff(_BoundsOff):
    """One element of v in 64 is wrong by twice the error that numerics.md allows.

    Source: numerics, 'How sharp'.
    """

    bounds = 2.0


class TwoBoundsOffInS(TorchMerge):
    """One s in eight is wrong by twice the error that numerics.md allows.

    Source: numerics, 'How sharp'.
    """

    def merge(self, v: Tensor, s: Tensor, base: int | str) -> State:
        v_new, s_new = super().merge(v, s, base)
        if s.shape[1] < 2:
            return v_new, s_new
        _, _, exact, bound = merge_with_bounds(v, s, base)
        chosen = (torch.arange(s_new.numel(), device=s.device) % 8 == 5).view(s_new.shape)
        chosen &= ((~self.empties(s)).sum(dim=1) > 1) & s_new.isfinite()
        return v_new, torch.where(chosen, (exact + 2.0 * bound).float(), s_new)


def merge_with_bounds(v: Tensor, s: Tensor, base: int | str) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """The merge in float64 and the bounds of numerics.md: v*, B_v (stored in T) [S, H, D]; s*, B_s [S, H].

    v [S, N, H, D], s [S, N, H]. Empties count as weight 0.
    """
    count, ln2 = s.shape[1], math.log(2.0)
    empty = s == -math.inf
    unit = 1.0 if base == "e" else ln2  # nats in one unit of s
    values = v.double().masked_fill(empty[..., None], 0.0)
    m = s.double().amax(dim=1)
    x = (s.double() - m[:, None]).masked_fill(empty, 0.0)
    w = (x * unit).exp().masked_fill(empty, 0.0)
    d = w.sum(dim=1)
    p = w / d[:, None]
    scale = 2.0 if base == "e" else 1.0  # base e scales by log2 e, one rounding more
    t = (scale * unit * x.abs() * U).exp() * (1.0 + 2.0**-22) - 1.0
    exact = (p[..., None] * values).sum(dim=1)
    mass = (p[..., None] * values.abs()).sum(dim=1)
    away = (values - exact[:, None]).abs()
    error = (p * t).sum(dim=1)
    bound = (p * t)[..., None].mul(away).sum(dim=1) / (1.0 - error)[..., None]
    bound = bound + U * ((count + 1) * mass + (count + 3) * exact.abs())
    bound = bound + 2.0**-126 * (away * ((w < 2.0**-126) & ~empty)[..., None]).sum(dim=1)
    if v.dtype != torch.float32:
        kind = torch.finfo(v.dtype)
        bound = bound + kind.eps / 2.0 * (exact.abs() + bound) + kind.smallest_normal * kind.eps / 2.0
    exact_s = m + d.log() / unit
    bound_s = (error + count * U) / ln2 + 2.0**-22 * (1.0 + d.log2())
    return exact, bound, exact_s, bound_s * (ln2 if base == "e" else 1.0) + U * exact_s.abs()
