"""Between the dtype of v and float32, rounding to nearest even.

Triton's interpreter (3.9) truncates float32 to bfloat16 and misreads bfloat16 subnormals, so there the bits are moved by
hand; compiled kernels use the hardware's conversion.
"""

from __future__ import annotations

import triton.language as tl

from mergelaws.backend import INTERPRETED as _INTERPRETED
from mergelaws.kernels.inlining import inlined

INTERPRETED = tl.constexpr(_INTERPRETED)


@inlined
def widened(x):
    """x as float32, exactly."""
    if INTERPRETED and x.dtype == tl.bfloat16:
        return (x.to(tl.uint16, bitcast=True).to(tl.uint32) << 16).to(tl.float32, bitcast=True)
    return x.to(tl.float32)


@inlined
def rounded(x, dtype: tl.constexpr):
    """The float32 x in `dtype`, rounded to nearest even; NaN stays NaN."""
    if INTERPRETED and dtype == tl.bfloat16:
        bits = x.to(tl.uint32, bitcast=True)
        bits = tl.where(x != x, 0x7FC00000, bits + 0x7FFF + ((bits >> 16) & 1))
        return (bits >> 16).to(tl.uint16).to(tl.bfloat16, bitcast=True)
    return x.to(dtype)
