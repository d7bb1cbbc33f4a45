"""The base of the logarithm, inside the kernels: s in base 2 is used as it is, s in base e is scaled around exp2 and log2."""

from __future__ import annotations

import triton.language as tl

from mergelaws.kernels.inlining import inlined

LOG2_E = tl.constexpr(1.4426950408889634)
LN_2 = tl.constexpr(0.6931471805599453)


@inlined
def weight_of(gap, NATURAL: tl.constexpr):
    """base ** gap for gap = s_i - max <= 0: the weight of a state relative to the heaviest one."""
    if NATURAL:
        return tl.exp2(gap * LOG2_E)
    return tl.exp2(gap)


@inlined
def log_of(total, NATURAL: tl.constexpr):
    """log of a sum of weights, in the base of s."""
    if NATURAL:
        return tl.log2(total) * LN_2
    return tl.log2(total)
