"""Partial states: the sums of a chunk of a row's states, and the sum of these.

A partial state is (m, d, acc): the largest s of its states, the sum of their weights b^(s_i - m), and the weighted sum of
their v; [LANES], [LANES] and [LANES, VEC], float32. No states give (-inf, 0, -0), an s that is no LSE gives m = NaN.
"""

from __future__ import annotations

import triton.language as tl

from mergelaws.kernels.inlining import inlined
from mergelaws.kernels.lanes import at_elements, over_elements
from mergelaws.kernels.logarithm import log_of, weight_of
from mergelaws.kernels.rounding import INTERPRETED, rounded, widened
from mergelaws.kernels.states import larger_of, load_s, load_v, lse_or_nan, peak_of
from mergelaws.kernels.tuning import LEAST_CHUNK as _LEAST_CHUNK

LEAST_CHUNK = tl.constexpr(_LEAST_CHUNK)


@inlined
def negative_zeros(LANES: tl.constexpr, VEC: tl.constexpr):
    """What a sum starts from: -0.0 + x is x, for x = -0.0 too. `tl.full` would make a +0.0 of a -0.0."""
    return tl.full([LANES, VEC], 0.0, tl.float32) * -1.0


@inlined
def fold(d, acc, m, s, v, unit, BATCH: tl.constexpr, LANES: tl.constexpr, VEC: tl.constexpr):
    """(d, acc) with BATCH more states, in this order, relative to m."""
    for i in tl.static_range(BATCH):
        filled = s[i] != float("-inf")  # an empty state's v does not count, whatever it is
        w = tl.where(filled, weight_of(s[i] - m, unit), 0.0)
        acc = tl.where(filled[:, None], tl.fma(over_elements(w, LANES, VEC), widened(v[i]), acc), acc)
        d += w
    return d, acc


@inlined
def partial_of(
    at_v, at_s, v_n, s_n, first, stop, length, wanted,
    unit, ONE: tl.constexpr, BATCH: tl.constexpr, SCAN: tl.constexpr,
    LANES: tl.constexpr, VEC: tl.constexpr,
):  # fmt: skip
    """The partial state of the states first..stop-1, `length` at most. ONE: a batch holds them all."""
    d = tl.full([LANES], 0.0, tl.float32)
    acc = negative_zeros(LANES, VEC)
    if ONE:
        v = load_v(at_v, v_n, first, stop, wanted, BATCH, VEC)
        s = load_s(at_s, s_n, first, stop, wanted, BATCH)
        m = lse_or_nan(larger_of(tl.full([LANES], float("-inf"), tl.float32), s, BATCH))
        d, acc = fold(d, acc, m, s, v, unit, BATCH, LANES, VEC)
    else:
        m = peak_of(at_s, s_n, first, stop, length, wanted, SCAN, LANES)
        for begin in range(0, length, BATCH):
            v = load_v(at_v, v_n, first + begin, stop, wanted, BATCH, VEC)
            s = load_s(at_s, s_n, first + begin, stop, wanted, BATCH)
            d, acc = fold(d, acc, m, s, v, unit, BATCH, LANES, VEC)
    return m, d, acc


@inlined
def add_partial(total_d, total, peak, m, d, acc, unit, LANES: tl.constexpr, VEC: tl.constexpr):
    """The running sums with one more partial state, brought from its own largest s to the row's."""
    filled = m != float("-inf")
    scale = tl.where(filled, weight_of(m - peak, unit), 0.0)
    total = tl.where(filled[:, None], tl.fma(over_elements(scale, LANES, VEC), acc, total), total)
    total_d = tl.where(filled, tl.fma(scale, d, total_d), total_d)
    return total_d, total


@inlined
def sum_of_chunks(
    at_v, at_s, v_n, s_n, count, chunk, parts, most, longest, wanted,
    unit, ONE: tl.constexpr, BATCH: tl.constexpr, SCAN: tl.constexpr,
    LANES: tl.constexpr, VEC: tl.constexpr,
):  # fmt: skip
    """(largest s, sum of weights, weighted sum of v) of the first `count` states of each lane's row, chunk after chunk.

    No lane has more than `parts` chunks, `most` states in one, or `longest` in all. ONE: a batch holds a chunk.
    """
    peak = peak_of(at_s, s_n, count * 0, count, longest, wanted, SCAN, LANES)
    total_d = tl.full([LANES], 0.0, tl.float32)
    total = negative_zeros(LANES, VEC)
    for part in range(0, parts):
        first = count * 0 + part * chunk
        stop = tl.minimum(first + chunk, count)
        length = most
        if (
            INTERPRETED
        ):  # no chunk is smaller, so that much is behind a row's earlier chunks; compiled, it saves nothing
            length = tl.minimum(most, longest - part * LEAST_CHUNK)
        m, d, acc = partial_of(at_v, at_s, v_n, s_n, first, stop, length, wanted, unit, ONE, BATCH, SCAN, LANES, VEC)
        total_d, total = add_partial(total_d, total, peak, m, d, acc, unit, LANES, VEC)
    return peak, total_d, total


@inlined
def sum_of_parts(
    part_m, part_d, part_acc, first, parts, step, offset, width, vector, most, wanted,
    unit, ONE: tl.constexpr, BATCH: tl.constexpr, LANES: tl.constexpr, VEC: tl.constexpr,
):  # fmt: skip
    """The same sums from `parts` partial states in memory, `most` at most: part p of a lane's row at p * step + offset.

    In the order and with the arithmetic of `sum_of_chunks`. ONE: a batch holds them all.
    """
    at_acc = at_elements(part_acc, offset * width + vector, VEC)
    step_acc = step * width
    stop = first + parts
    total_d = tl.full([LANES], 0.0, tl.float32)
    total = negative_zeros(LANES, VEC)
    if ONE:
        acc = load_v(at_acc, step_acc, first, stop, wanted, BATCH, VEC)
        m = load_s(part_m + offset, step, first, stop, wanted, BATCH)
        d = load_s(part_d + offset, step, first, stop, wanted, BATCH)
        peak = lse_or_nan(
            larger_of(tl.full([LANES], float("-inf"), tl.float32), m, BATCH)
        )  # a NaN part makes a NaN row
        for i in tl.static_range(BATCH):
            total_d, total = add_partial(total_d, total, peak, m[i], d[i], acc[i], unit, LANES, VEC)
    else:
        peak = peak_of(part_m + offset, step, first, stop, most, wanted, BATCH, LANES)
        for begin in range(0, most, BATCH):
            part = first + begin
            acc = load_v(at_acc, step_acc, part, stop, wanted, BATCH, VEC)
            m = load_s(part_m + offset, step, part, stop, wanted, BATCH)
            d = load_s(part_d + offset, step, part, stop, wanted, BATCH)
            for i in tl.static_range(BATCH):
                total_d, total = add_partial(total_d, total, peak, m[i], d[i], acc[i], unit, LANES, VEC)
    return peak, total_d, total


@inlined
def store_part(
    part_m, part_d, part_acc, at, width, vector, m, d, acc, wanted, VEC: tl.constexpr
):  # fmt: skip
    """Writes a partial state of each lane's row to place `at` of part_m, part_d [places] and part_acc [places, D]."""
    tl.store(part_m + at, m, mask=wanted & (vector == 0))
    tl.store(part_d + at, d, mask=wanted & (vector == 0))
    tl.store(at_elements(part_acc, at * width + vector, VEC), acc, mask=wanted[:, None])


@inlined
def store_row(v_out, s_out, row, width, vector, peak, total_d, total, wanted, unit, VEC: tl.constexpr):
    """Writes the state whose sums are complete: (NaN, NaN) if an s was no LSE, (0, -inf) if all states were empty."""
    poisoned = peak != peak
    empty = peak == float("-inf")
    v = total * tl.div_rn(1.0, tl.where(empty, 1.0, total_d))[:, None]
    v = tl.where(empty[:, None], 0.0, v)
    v = tl.where(poisoned[:, None] | (v != v), float("nan"), v)
    s = tl.where(empty | poisoned, peak, peak + log_of(total_d, unit))
    s = tl.where(total_d == 1.0, peak, s)  # one state left: its s as it was, -0.0 too
    tl.store(at_elements(v_out, row * width + vector, VEC), rounded(v, v_out.dtype.element_ty), mask=wanted[:, None])
    tl.store(s_out + row, s, mask=wanted & (vector == 0))
