"""Faults of the logarithm's base and of its constants."""

from __future__ import annotations

import math

from torch import Tensor

from implementations.torch_reference import State, TorchMerge

LOG2E = math.log2(math.e)
LN2 = math.log(2.0)


class ExpForExp2(TorchMerge):
    """Base 2 is merged as base e: exp in the weights, ln in the LSE.

    Source: sglang#33064.
    """

    def exponential(self, x: Tensor, base: int | str) -> Tensor:
        return super().exponential(x, "e")

    def logarithm(self, d: Tensor, base: int | str) -> Tensor:
        return super().logarithm(d, "e")


class Exp2ForExp(TorchMerge):
    """Base e is merged as base 2: exp2 in the weights, log2 in the LSE.

    Source: sglang#33064, sglang#40903.
    """

    def exponential(self, x: Tensor, base: int | str) -> Tensor:
        return super().exponential(x, 2)

    def logarithm(self, d: Tensor, base: int | str) -> Tensor:
        return super().logarithm(d, 2)


class LnInTheLse(TorchMerge):
    """In base 2 the weights are right and the LSE takes ln: equal states give s + 0.693 for s + 1.

    Source: sglang#40903.
    """

    def logarithm(self, d: Tensor, base: int | str) -> Tensor:
        return super().logarithm(d, "e")


class Log2InTheLse(TorchMerge):
    """In base e the weights are right and the LSE takes log2.

    Source: sglang#33064.
    """

    def logarithm(self, d: Tensor, base: int | str) -> Tensor:
        return super().logarithm(d, 2)


class ExpInTheWeights(TorchMerge):
    """In base 2 the LSE takes log2 and the weights exp: right where all s are equal.

    Source: sglang#40903 (unequal lengths show it, equal ones do not).
    """

    def exponential(self, x: Tensor, base: int | str) -> Tensor:
        return super().exponential(x, "e")


class ConvertedTheWrongWay(TorchMerge):
    """Base e is turned into base 2 by ln 2 and back by log2 e: the two constants are swapped.

    Source: sglang#33064 (the class: which of two bases).
    """

    def exponential(self, x: Tensor, base: int | str) -> Tensor:
        return super().exponential(x * LN2, 2) if base == "e" else super().exponential(x, 2)

    def logarithm(self, d: Tensor, base: int | str) -> Tensor:
        return super().logarithm(d, 2) * LOG2E if base == "e" else super().logarithm(d, 2)


class SecondStateInTheOtherBase(TorchMerge):
    """The second of two states comes from a kernel that returns the other base and is not converted.

    Source: sglang#40903.
    """

    def merge_two(self, v_a: Tensor, s_a: Tensor, v_b: Tensor, s_b: Tensor, base: int | str) -> State:
        return super().merge_two(v_a, s_a, v_b, s_b * (LOG2E if base == "e" else LN2), base)


class ConversionBeforeSubtraction(TorchMerge):
    """Base e: every s is multiplied by log2 e before the subtraction, which overflows near 2.4e38 and rounds each s.

    Source: flashinfer#5119.
    """

    def merge(self, v: Tensor, s: Tensor, base: int | str) -> State:
        if base == 2:
            return super().merge(v, s, 2)
        v_new, s_new = super().merge(v, s * LOG2E, 2)
        return v_new, s_new * LN2


class CoarseLog2E(TorchMerge):
    """Base e: weights are 2^(1.44269 y). The constant lacks its seventh digit (log2 e = 1.4426950).

    Source: mutation of the constant.
    """

    def exponential(self, x: Tensor, base: int | str) -> Tensor:
        return super().exponential(x * 1.44269, 2) if base == "e" else super().exponential(x, 2)


class CoarseLn2InTheWeights(TorchMerge):
    """Base 2: weights are exp(0.69315 x). The constant lacks its sixth and seventh digits (ln 2 = 0.6931472).

    Source: mutation of the constant.
    """

    def exponential(self, x: Tensor, base: int | str) -> Tensor:
        return super().exponential(x * 0.69315 if base == 2 else x, "e")


class CoarseLn2InTheLse(TorchMerge):
    """Base e: the LSE is m + 0.693148 log2 d. The constant is wrong from the seventh decimal on (ln 2 = 0.6931472).

    Source: mutation of the constant.
    """

    def logarithm(self, d: Tensor, base: int | str) -> Tensor:
        return super().logarithm(d, 2) * 0.693148 if base == "e" else super().logarithm(d, 2)


class LseThroughTheOtherBase(TorchMerge):
    """Base e: m goes to base 2 by 1.442695 and back by 0.693147, whose product is 1 - 3e-7: wrong where |s| is large.

    Source: mutation of the constant; sglang#33064 asks for the conversion.
    """

    def lse(self, m: Tensor, d: Tensor, base: int | str) -> Tensor:
        return (m * 1.442695 + d.log2()) * 0.693147 if base == "e" else super().lse(m, d, base)
