"""Right implementations of merging N states in NumPy, of different form: what the bound has to let through.

Each takes v [R, N, D] and s [R, N] in float64, values of float32, and returns v [R, D] and s [R] in float32, before v is
stored in its dtype. Base "e" comes in two forms: exp and log themselves, and exp2 and log2 with a scale.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy
from numpy.typing import NDArray

Array = NDArray[Any]
Merge = Callable[[Array, Array, "int | str"], tuple[Array, Array]]

_LOG2_E, _LN_2 = numpy.float32(numpy.log2(numpy.e)), numpy.float32(numpy.log(2.0))


def two_passes(v: Array, s: Array, base: int | str) -> tuple[Array, Array]:
    """The largest s, then the sums in order, then one division."""
    v, s = v.astype(numpy.float32), s.astype(numpy.float32)
    m, w = _weights(s, numpy.exp if base == "e" else numpy.exp2)
    d, sums = numpy.zeros_like(m), numpy.zeros_like(v[:, 0])
    for i in range(s.shape[1]):
        d = d + w[:, i]
        sums = sums + w[:, i, None] * _counted(v, w, i)
    return _finished(sums, d, m, numpy.log if base == "e" else numpy.log2)


def scaled_first(v: Array, s: Array, base: int | str) -> tuple[Array, Array]:
    """The weights are divided by their sum before v is touched; the sums go backwards."""
    v, s = v.astype(numpy.float32), s.astype(numpy.float32)
    m, w = _weights(s, _scaled_exp if base == "e" else numpy.exp2)
    d = numpy.zeros_like(m)
    for i in reversed(range(s.shape[1])):
        d = d + w[:, i]
    sums = numpy.zeros_like(v[:, 0])
    for i in reversed(range(s.shape[1])):
        sums = sums + (w[:, i] / numpy.where(d == 0, 1, d))[:, None] * _counted(v, w, i)
    _, lse = _finished(sums, d, m, _scaled_log if base == "e" else numpy.log2)
    return sums, lse


def online(v: Array, s: Array, base: int | str) -> tuple[Array, Array]:
    """One pass: the sums are rescaled whenever a larger s turns up."""
    v, s = v.astype(numpy.float32), s.astype(numpy.float32)
    power = _scaled_exp if base == "e" else numpy.exp2
    m = numpy.full_like(s[:, 0], -numpy.inf) if s.shape[1] else numpy.full(len(s), -numpy.inf, numpy.float32)
    d, sums = numpy.zeros_like(m), numpy.zeros_like(v[:, 0])
    for i in range(s.shape[1]):
        larger = numpy.maximum(m, s[:, i])
        nothing = numpy.isneginf(larger)
        scale, w = (numpy.where(nothing, 0, power(numpy.where(nothing, 0, x - larger))) for x in (m, s[:, i]))
        d = d * scale + w
        sums = sums * scale[:, None] + w[:, None] * numpy.where(w[:, None] > 0, v[:, i], 0)
        m = larger
    return _finished(sums, d, m, _scaled_log if base == "e" else numpy.log2)


def in_float64(v: Array, s: Array, base: int | str) -> tuple[Array, Array]:
    """float64 inside, rounded to float32 at the end."""
    m, w = _weights(s, numpy.exp if base == "e" else numpy.exp2)
    d = w.sum(axis=1)
    sums = sum((w[:, i, None] * _counted(v, w, i) for i in range(s.shape[1])), numpy.zeros_like(v[:, 0]))
    out, lse = _finished(sums, d, m, numpy.log if base == "e" else numpy.log2)
    return out.astype(numpy.float32), lse.astype(numpy.float32)


RIGHT: tuple[Merge, ...] = (two_passes, scaled_first, online, in_float64)


def _weights(s: Array, power: Callable[[Array], Array]) -> tuple[Array, Array]:
    m = s.max(axis=1)
    nothing = numpy.isneginf(m)
    gap = numpy.where(nothing[:, None], -numpy.inf, s - numpy.where(nothing, 0, m)[:, None])
    return m, power(gap)


def _counted(v: Array, w: Array, i: int) -> Array:
    """v of state i, 0 where it weighs nothing: its v may be anything."""
    return numpy.where(w[:, i, None] > 0, v[:, i], 0)


def _finished(sums: Array, d: Array, m: Array, log: Callable[[Array], Array]) -> tuple[Array, Array]:
    some = numpy.where(d == 0, 1, d)
    return sums / some[:, None], m + log(some)


def _scaled_exp(x: Array) -> Array:
    power: Array = numpy.exp2(x * _LOG2_E)
    return power


def _scaled_log(x: Array) -> Array:
    log: Array = numpy.log2(x) * _LN_2
    return log
