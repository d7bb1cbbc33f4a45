"""Faults of the weights, of their sum, and of the LSE that it makes."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from implementations.torch_reference import State, TorchMerge


class WeightsSwapped(TorchMerge):
    """Each state gets the weight of its mirror image: of two states, the other's.

    Source: mutation of the formula (semantics, section 1).
    """

    def products(self, w: Tensor, v: Tensor, empty: Tensor) -> Tensor:
        return super().products(w.flip(1), v, empty)


class WrongSign(TorchMerge):
    """Weights are 2^(m - s): the lighter state weighs more.

    Source: mutation of the formula (semantics, section 1).
    """

    def exponential(self, x: Tensor, base: int | str) -> Tensor:
        return super().exponential(-x, base)


class NotNormalised(TorchMerge):
    """The weighted sum is not divided by the sum of the weights.

    Source: mutation of the formula (semantics, section 1).
    """

    def quotient(self, numerator: Tensor, d: Tensor) -> Tensor:
        return numerator


class NormalisedTwice(TorchMerge):
    """The weights are divided by their sum, and the result once more.

    Source: mutation of the formula (semantics, section 1).
    """

    def quotient(self, numerator: Tensor, d: Tensor) -> Tensor:
        return super().quotient(super().quotient(numerator, d), d)


class EpsilonInTheDenominator(TorchMerge):
    """The sum of the weights gets 1e-6, so that an empty row gives 0: every other row is a millionth too small.

    Source: burn#4697 (a floor of 1e-6 under the sum), here added to it.
    """

    def quotient(self, numerator: Tensor, d: Tensor) -> Tensor:
        return super().quotient(numerator, d + 1e-6)


class ApproximateReciprocal(TorchMerge):
    """The division is a product with a reciprocal of 12 bits, without the Newton step that completes it.

    Source: mutation; the pattern `weight * approx_rcp(sum)` stands in flashinfer#4573.
    """

    def quotient(self, numerator: Tensor, d: Tensor) -> Tensor:
        mantissa, exponent = torch.frexp(1.0 / d)
        return numerator * torch.ldexp((mantissa * 4096).round() / 4096, exponent)[..., None]


class DenominatorSharedByHeads(TorchMerge):
    """Every head is divided by the sum of the first head's weights.

    Source: flash-attention#176 (rows mixed).
    """

    def quotient(self, numerator: Tensor, d: Tensor) -> Tensor:
        return super().quotient(numerator, d[:, :1].expand_as(d))


class WeightsOfTheFirstHead(TorchMerge):
    """The weights are computed once for a position, from its first head.

    Source: flash-attention#176 (rows mixed).
    """

    def products(self, w: Tensor, v: Tensor, empty: Tensor) -> Tensor:
        return super().products(w[:, :, :1].expand_as(w), v, empty)


class LighterDropped(TorchMerge):
    """A state more than 20 below the maximum is skipped as negligible, whatever its v.

    Source: mutation; the usual fast path of an online softmax.
    """

    def exponential(self, x: Tensor, base: int | str) -> Tensor:
        return super().exponential(x, base).masked_fill(x < -20.0, 0.0)


class GapClampedAt80(TorchMerge):
    """The difference to the maximum is held above -80 against underflow: a state at -120 weighs 2^40 times too much.

    Source: mutation; the usual guard in front of an approximate exponential.
    """

    def exponential(self, x: Tensor, base: int | str) -> Tensor:
        return super().exponential(x.clamp(min=-80.0), base)


class LerpFromTheFirst(TorchMerge):
    """v_a - sigmoid(s_b - s_a) (v_a - v_b): a large v_a of hardly any weight cancels and leaves its rounding error.

    Source: ring-flash-attention#34 (the form), mutation (its base is always the first state).
    """

    def merge_two(self, v_a: Tensor, s_a: Tensor, v_b: Tensor, s_b: Tensor, base: int | str) -> State:
        v_new, s_new = super().merge_two(v_a, s_a, v_b, s_b, base)
        p = torch.sigmoid((s_b - s_a) * (1.0 if base == "e" else math.log(2.0)))[..., None]
        lerp = v_a.float() - p * (v_a.float() - v_b.float())
        both = (s_a.isfinite() & s_b.isfinite())[..., None]
        return torch.where(both, lerp.to(v_a.dtype), v_new), s_new


class FirstOrderLogarithm(TorchMerge):
    """log2(1 + w) is w / ln 2 for w below 2^-9, one term short of float32.

    Source: mutation of the formula (semantics, section 1).
    """

    def logarithm(self, d: Tensor, base: int | str) -> Tensor:
        first_order = (d - 1.0) * (1.0 if base == "e" else 1.0 / math.log(2.0))
        return torch.where(d < 1.0 + 2.0**-9, first_order, super().logarithm(d, base))


class MaximumAsLse(TorchMerge):
    """s is the largest s of the row: the logarithm of the sum of the weights is forgotten.

    Source: mutation of the formula (semantics, section 1).
    """

    def lse(self, m: Tensor, d: Tensor, base: int | str) -> Tensor:
        return m


class FirstLseKept(TorchMerge):
    """v is merged and s stays that of the first state.

    Source: mutation; the second merge of a chain then starts from an old s.
    """

    def merge(self, v: Tensor, s: Tensor, base: int | str) -> State:
        v_new, s_new = super().merge(v, s, base)
        return v_new, s[:, 0].clone() if s.shape[1] else s_new


class MaximumNotAddedBack(TorchMerge):
    """s is log2 d alone: the maximum that was subtracted is not added again.

    Source: mutation of the formula (semantics, section 1).
    """

    def lse(self, m: Tensor, d: Tensor, base: int | str) -> Tensor:
        return self.logarithm(d, base)


class MeanForSum(TorchMerge):
    """s is the logarithm of the mean of 2^s_i, not of their sum: two equal states keep s.

    Source: rocm-libraries#12227 (idempotence taken for granted).
    """

    def merge(self, v: Tensor, s: Tensor, base: int | str) -> State:
        v_new, s_new = super().merge(v, s, base)
        count = (~self.empties(s)).sum(dim=1).clamp(min=1).float()
        return v_new, s_new - self.logarithm(count, base)
