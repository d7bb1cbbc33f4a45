"""The float64 screen: the ratio of error over bound for many rows at once, sure but for a thin band around 1.

float64 is 2^29 times finer than the float32 that is judged, so a screened ratio near 1 is off by far less than GUARD
(derived in docs/numerics.md). Only rows within the band need mpmath. The formulas are those of oracles/exact.py,
oracles/bounds.py and oracles/ratio.py.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy
from numpy.typing import NDArray

from oracles.bounds import DEEPEST, FLUSH, FLUSHED_GAP, LEAST, UNIT, Arithmetic, U
from oracles.exact import natural_unit

Array = NDArray[numpy.float64]

GUARD = 2.0**-24
_NO_WEIGHT = -1100.0  # b to this is 0 in float64
_MOST_ELEMENTS = 1 << 18  # of v in one pass: what it works on fits the cache


@dataclass(frozen=True)
class Ratios:
    """Error over bound: v [R, D] and s [R]; inf where the class of a result (NaN, infinite) is wrong."""

    v: Array
    s: Array


def screen(v: Array, s: Array, v_out: Array, s_out: Array, dtype: str, arithmetic: Arithmetic) -> Ratios:
    """The ratios of R rows: states v [R, N, D] and s [R, N], results v_out [R, D] and s_out [R], exact values in float64.

    s is in the base of `arithmetic`; v_out was stored in `dtype`. R, N and D may be 0. Raises ValueError for a base that is
    neither 2 nor "e".
    """
    rows, count, dim = v.shape
    step = max(1, _MOST_ELEMENTS // max(1, count * dim))
    ratios = Ratios(numpy.empty((rows, dim)), numpy.empty(rows))
    with numpy.errstate(all="ignore"):  # classes are sorted out by mask, after the arithmetic
        for first in range(0, rows, step):
            part = slice(first, first + step)
            ratios.v[part], ratios.s[part] = _screen(v[part], s[part], v_out[part], s_out[part], dtype, arithmetic)
    return ratios


def undecided(ratios: Ratios) -> NDArray[numpy.bool_]:
    """The rows [R] that float64 cannot decide: a ratio within GUARD of 1."""
    near_v, near_s = numpy.abs(ratios.v - 1.0) <= GUARD, numpy.abs(ratios.s - 1.0) <= GUARD
    rows: NDArray[numpy.bool_] = numpy.logical_or.reduce(near_v, axis=1) | near_s
    return rows


def _screen(v: Array, s: Array, v_out: Array, s_out: Array, dtype: str, arithmetic: Arithmetic) -> tuple[Array, Array]:
    unit = float(natural_unit(arithmetic.base))
    poisoned = numpy.logical_or.reduce(numpy.isnan(s) | numpy.isposinf(s), axis=1)  # [R]
    filled = numpy.isfinite(s)  # [R, N]
    n = filled.sum(axis=1)  # [R]
    empty = ~poisoned & (n == 0)
    m = numpy.where(filled, s, -numpy.inf).max(axis=1, initial=-numpy.inf)
    m = numpy.where(n == 0, 0.0, m)
    gap = numpy.where(filled, s - m[:, None], 0.0)  # [R, N]
    w = (numpy.exp if arithmetic.base == "e" else numpy.exp2)(numpy.maximum(gap, _NO_WEIGHT))
    w = numpy.where(filled, w, 0.0)
    d = numpy.where(n == 0, 1.0, w.sum(axis=1))
    p = w / d[:, None]
    pt = p * _weight_errors(gap * -unit, n, arithmetic)
    drift = pt.sum(axis=1)

    broken = None
    if not numpy.isfinite(v).all():
        sound = numpy.isfinite(v)
        broken = numpy.logical_or.reduce(filled[:, :, None] & ~sound, axis=1)  # [R, D]
        v = numpy.where(sound & filled[:, :, None], v, 0.0)  # an empty state's v is not looked at
    star = _weighted(p, v)  # [R, D]
    distance = numpy.abs(v - star[:, None])  # [R, N, D]
    bound = _weighted(pt, distance) / numpy.maximum(1.0 - drift, 0.0)[:, None]
    bound += U * ((n + 1)[:, None] * _weighted(p, numpy.abs(v)) + (n + 3)[:, None] * numpy.abs(star))
    bound += FLUSH * (1.0 + (3 * n - 2) / d)[:, None]
    lost = filled & (gap < FLUSHED_GAP[arithmetic.base])
    if lost.any():
        bound += FLUSH * _weighted(lost.astype(numpy.float64), distance)
    if dtype != "float32":
        bound += UNIT[dtype] * (numpy.abs(star) + bound) + LEAST[dtype] / 2.0
    log_d = numpy.log(d) / unit
    s_bound = -numpy.log1p(-numpy.minimum(drift + n * U, 1.0)) / unit + arithmetic.log_error * (1.0 + log_d)
    s_bound += U * numpy.abs(m + log_d)

    v_ratio = _finite(numpy.abs(v_out - star) / bound, v_out)
    s_ratio = _finite(numpy.abs((s_out - m) - log_d) / s_bound, s_out)  # in this order the large parts cancel exactly
    if broken is not None:
        v_ratio = numpy.where(broken, _class_only(~numpy.isfinite(v_out)), v_ratio)
    v_ratio = numpy.where(empty[:, None], _class_only(v_out == 0.0), v_ratio)
    v_ratio = numpy.where(poisoned[:, None], _class_only(numpy.isnan(v_out)), v_ratio)
    s_ratio = numpy.where(empty, _class_only(numpy.isneginf(s_out)), s_ratio)
    s_ratio = numpy.where(poisoned, _class_only(numpy.isnan(s_out)), s_ratio)
    return v_ratio, s_ratio


def _weight_errors(depth: Array, n: NDArray[numpy.int_], arithmetic: Arithmetic) -> Array:
    """t [R, N] of weights that lie `depth` [R, N] natural units below the largest; n [R] non-empty states."""
    counts, which = numpy.unique(n, return_inverse=True)
    chains = [arithmetic.chain(count) for count in counts.tolist()]
    logs = [k * numpy.log1p(arithmetic.exp_error) + rescalings * numpy.log1p(U) for k, rescalings in chains]
    common = numpy.array(logs)[which]  # [R]
    per_unit = 2.0 if arithmetic.base == "e" else 1.0
    errors: Array = numpy.expm1(per_unit * U * numpy.minimum(depth, DEEPEST) + common[:, None])
    return errors


def _weighted(weights: Array, values: Array) -> Array:
    """sum_i weights_i values_i: [R, N] and [R, N, D] to [R, D]."""
    total: Array = numpy.einsum("rn,rnd->rd", weights, values)
    return total


def _finite(ratio: Array, out: Array) -> Array:
    """The ratio where the result is a number, inf where it is not; no error is 0."""
    return numpy.where(numpy.isfinite(out), numpy.where(numpy.isnan(ratio), 0.0, ratio), numpy.inf)


def _class_only(matches: NDArray[numpy.bool_]) -> Array:
    return numpy.where(matches, 0.0, numpy.inf)
