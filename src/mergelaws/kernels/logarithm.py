"""The base of the logarithm, inside the kernels: s in base 2 is used as it is, s in base e is scaled around exp2 and log2.

`unit` is what one unit of s is in base 2: 1 or log2 e, in float32. Multiplied by 1, base 2 keeps every bit, and one kernel
serves both bases.
"""

from __future__ import annotations

import math

import triton.language as tl

from mergelaws.kernels.inlining import inlined

LN_2 = tl.constexpr(0.6931471805599453)


def unit_of(natural: bool) -> float:
    """`unit`, for s as a natural logarithm or in base 2."""
    return math.log2(math.e) if natural else 1.0


@inlined
def weight_of(gap, unit):
    """base ** gap for gap = s_i - max <= 0: the weight of a state relative to the heaviest one."""
    return tl.exp2(gap * unit)


@inlined
def log_of(total, unit):
    """log of a sum of weights, in the base of s."""
    return tl.log2(total) * tl.where(unit == 1.0, 1.0, LN_2)
