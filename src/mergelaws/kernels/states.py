"""Reading the states of a row, one row a lane; and the largest s of some of them."""

from __future__ import annotations

import triton.language as tl

from mergelaws.kernels.inlining import inlined
from mergelaws.kernels.rounding import INTERPRETED

INTERPRETED_SCAN = tl.constexpr(32)


@inlined
def load_s(at_s, s_n, first, stop, wanted, BATCH: tl.constexpr):
    """The s of the states first..stop-1 of each lane's row, BATCH at most: a tuple of [LANES], -inf beyond the last."""
    values = ()
    for i in tl.static_range(BATCH):
        s = tl.load(at_s + (first + i) * s_n, mask=wanted & (first + i < stop), other=float("-inf"))
        values = values + (s,)  # type: ignore[assignment]  # the length of the tuple is a constant of the kernel
    return values


@inlined
def load_v(at_v, v_n, first, stop, wanted, BATCH: tl.constexpr, VEC: tl.constexpr):
    """Likewise their v: a tuple of [LANES, VEC]. Loads come before what uses them, so that all are in flight at once."""
    values = ()
    for i in tl.static_range(BATCH):
        inside = (wanted & (first + i < stop))[:, None]
        at = at_v + ((first + i) * v_n * VEC)[:, None]
        at = tl.multiple_of(at, (1, VEC * at.dtype.element_ty.primitive_bitwidth // 8))  # see lanes.at_elements
        v = tl.load(at, mask=inside, other=0.0)
        values = values + (v,)  # type: ignore[assignment]
    return values


@inlined
def larger_of(peak, values, BATCH: tl.constexpr):
    """The largest of peak and the values; +inf in place of NaN."""
    for i in tl.static_range(BATCH):
        peak = tl.maximum(peak, tl.where(values[i] < float("inf"), values[i], float("inf")))
    return peak


@inlined
def lse_or_nan(peak):
    """The largest s; NaN where an s was no LSE, that is NaN or +inf."""
    return tl.where(peak == float("inf"), float("nan"), peak)


@inlined
def peak_of(at_s, s_n, first, stop, length, wanted, BATCH: tl.constexpr, LANES: tl.constexpr):
    """The largest s of the states first..stop-1 of each lane's row, `length` at most; NaN where one is NaN or +inf."""
    peak = tl.full([LANES], float("-inf"), tl.float32)
    if INTERPRETED:  # where an operation costs the same whatever it holds
        for begin in range(0, length, INTERPRETED_SCAN):
            state = first[:, None] + (begin + tl.arange(0, INTERPRETED_SCAN))[None, :]  # [LANES, INTERPRETED_SCAN]
            inside = wanted[:, None] & (state < stop[:, None])
            s = tl.load(at_s[:, None] + state * s_n, mask=inside, other=float("-inf"))
            peak = tl.maximum(peak, tl.max(tl.where(s < float("inf"), s, float("inf")), axis=1))
    else:
        for begin in range(0, length, BATCH):
            peak = larger_of(peak, load_s(at_s, s_n, first + begin, stop, wanted, BATCH), BATCH)
    return lse_or_nan(peak)
