"""Merging N states of a row, N the same for all rows.

    M = max s_i;  v = sum 2^(s_i - M) v_i / sum 2^(s_i - M);  s = M + log2 sum 2^(s_i - M)

The states are cut into chunks whose size is a function of N alone. A chunk is folded into a partial state
(m, d, acc): its largest s, its sum of weights and its weighted sum of v, both relative to m. The partial states are
then added in order, scaled by 2^(m - M). So every weight is a product of two exponentials at most, v is read once,
and the order of the additions is the same whether one program folds all chunks or each chunk has its own.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl

from mergelaws.kernels.lanes import at_elements, lanes_of, width_of
from mergelaws.kernels.launching import Launch
from mergelaws.kernels.layout import constant_width, is_wide, steps_of, strides_in_vectors, vector_of
from mergelaws.kernels.logarithm import unit_of
from mergelaws.kernels.overlapping import allow_successor, await_predecessor, overlaps_on
from mergelaws.kernels.partial import partial_of, store_part, store_row, sum_of_chunks, sum_of_parts
from mergelaws.kernels.plan import Plan
from mergelaws.kernels.tuning import chunk_of, part_tile, shared_tile, shares_chunks, whole_tile

# No kernel is compiled for what these happen to be: whole vectors are aligned whatever the strides, counted in vectors.
POINTERS = ("v", "s", "v_out", "s_out", "part_m", "part_d", "part_acc")
INTEGERS = ("rows", "heads", "states", "chunk", "parts", "vectors", "v_s", "v_n", "v_h", "v_d", "s_s", "s_n", "s_h")


@triton.jit(do_not_specialize=INTEGERS, do_not_specialize_on_alignment=POINTERS)
def whole_rows_kernel(
    v, s, v_out, s_out,
    rows, heads, states, chunk, vectors,
    v_s, v_n, v_h, v_d, s_s, s_n, s_h, unit,
    VEC: tl.constexpr, VECTORS: tl.constexpr, LANES: tl.constexpr, WIDE: tl.constexpr,
    SINGLE: tl.constexpr, ONE: tl.constexpr, BATCH: tl.constexpr, SCAN: tl.constexpr, OVERLAPS: tl.constexpr,
):  # fmt: skip
    """A program merges all states of its lanes' rows. SINGLE: a batch holds a row's. ONE: a batch holds a chunk."""
    width = width_of(vectors, VECTORS)
    row, vector = lanes_of(tl.program_id(0), width, LANES, WIDE)  # [LANES]
    position, head = row // heads, row % heads
    wanted = row < rows
    at_v = at_elements(v, position * v_s + head * v_h + vector * v_d, VEC)  # [LANES, VEC]
    at_s = s + (position * s_s + head * s_h)
    none = row * 0  # as wide as an offset
    await_predecessor(OVERLAPS)
    if SINGLE:
        peak, total_d, total = partial_of(
            at_v, at_s, v_n, s_n, none, states, states, wanted, unit, True, BATCH, SCAN, LANES, VEC
        )
    else:
        parts = (states + chunk - 1) // chunk
        peak, total_d, total = sum_of_chunks(
            at_v, at_s, v_n, s_n, none + states, chunk, parts, chunk, states, wanted, unit, ONE, BATCH, SCAN, LANES, VEC
        )
    allow_successor(OVERLAPS)
    store_row(v_out, s_out, row, width, vector, peak, total_d, total, wanted, unit, VEC)


@triton.jit(do_not_specialize=INTEGERS, do_not_specialize_on_alignment=POINTERS)
def one_chunk_kernel(
    v, s, part_m, part_d, part_acc,
    rows, heads, states, chunk, vectors,
    v_s, v_n, v_h, v_d, s_s, s_n, s_h, unit,
    VEC: tl.constexpr, VECTORS: tl.constexpr, LANES: tl.constexpr, WIDE: tl.constexpr,
    ONE: tl.constexpr, BATCH: tl.constexpr, SCAN: tl.constexpr, OVERLAPS: tl.constexpr,
):  # fmt: skip
    """First stage: a program folds one chunk of its lanes' rows; parts are [chunks, rows(, D)] in float32."""
    # The next launch is let in early if this one is short: 1 x 64 2.79, late 3.20; 16 x 512 x 8 x 128 8.60, late 7.47
    if ONE and BATCH <= 16:
        allow_successor(OVERLAPS)
    width = width_of(vectors, VECTORS)
    row, vector = lanes_of(tl.program_id(0), width, LANES, WIDE)  # [LANES]
    part = tl.program_id(1)
    position, head = row // heads, row % heads
    wanted = row < rows
    at_v = at_elements(v, position * v_s + head * v_h + vector * v_d, VEC)  # [LANES, VEC]
    at_s = s + (position * s_s + head * s_h)
    first = row * 0 + part * chunk  # as wide as an offset
    stop = tl.minimum(first + chunk, states)
    await_predecessor(OVERLAPS)
    m, d, acc = partial_of(at_v, at_s, v_n, s_n, first, stop, chunk, wanted, unit, ONE, BATCH, SCAN, LANES, VEC)
    if not (ONE and BATCH <= 16):
        allow_successor(OVERLAPS)
    if WIDE:
        part = part.to(tl.int64)
    store_part(part_m, part_d, part_acc, part * rows + row, width, vector, m, d, acc, wanted, VEC)


@triton.jit(do_not_specialize=INTEGERS, do_not_specialize_on_alignment=POINTERS)
def add_parts_kernel(
    part_m, part_d, part_acc, v_out, s_out,
    rows, parts, vectors, unit,
    VEC: tl.constexpr, VECTORS: tl.constexpr, LANES: tl.constexpr, WIDE: tl.constexpr,
    ONE: tl.constexpr, BATCH: tl.constexpr, OVERLAPS: tl.constexpr,
):  # fmt: skip
    """Second stage: adds the partial states of its lanes' rows, in the order and with the arithmetic of one program."""
    allow_successor(OVERLAPS)
    width = width_of(vectors, VECTORS)
    row, vector = lanes_of(tl.program_id(0), width, LANES, WIDE)  # [LANES]
    wanted = row < rows
    none = row * 0  # as wide as an offset
    await_predecessor(OVERLAPS)
    peak, total_d, total = sum_of_parts(
        part_m, part_d, part_acc, none, parts, rows, row, width, vector, parts, wanted, unit, ONE, BATCH, LANES, VEC
    )
    store_row(v_out, s_out, row, width, vector, peak, total_d, total, wanted, unit, VEC)


def many_states(v: torch.Tensor, s: torch.Tensor, natural: bool) -> Plan:
    """How to merge v [S, N, H, D], s [S, N, H] over N into contiguous v_out [S, H, D], s_out [S, H]; in this order."""
    positions, states, heads, dim = v.shape
    rows, chunk = positions * heads, chunk_of(states)
    if rows == 0:
        return Plan(())
    parts = triton.cdiv(states, chunk)
    shared = shares_chunks(rows * dim // vector_of(v), states)
    tile = shared_tile(rows * dim, vector_of(v), chunk) if shared else whole_tile(rows * dim, vector_of(v), states)
    vectors = dim // tile.vec
    constants = {
        "VEC": tile.vec,
        "VECTORS": constant_width(vectors),
        "LANES": tile.lanes,
        "ONE": chunk <= tile.batch,
        "BATCH": tile.batch,
        "SCAN": tile.scan,
        "WIDE": is_wide(v, s, elements=rows * dim * (parts if shared else 1)),
        "OVERLAPS": overlaps_on(v.get_device()),
    }
    tiles = triton.cdiv(rows * vectors, tile.lanes)
    numbers = rows, heads, states, chunk, vectors, *strides_in_vectors(v, tile.vec), *steps_of(s), unit_of(natural)
    if not shared:
        constants["SINGLE"] = states <= tile.batch
        return Plan((Launch(whole_rows_kernel, (tiles,), (0, 1, 2, 3), numbers, constants, tile.warps),))
    folding = Launch(one_chunk_kernel, (tiles, parts), (0, 1, 4, 5, 6), numbers, constants, tile.warps)
    tile = part_tile(rows, dim, parts)
    vectors = dim // tile.vec
    constants |= {"VEC": tile.vec, "VECTORS": constant_width(vectors), "LANES": tile.lanes, "BATCH": tile.batch}
    constants["ONE"] = parts <= tile.batch
    tiles = triton.cdiv(rows * vectors, tile.lanes)
    adding = Launch(
        add_parts_kernel, (tiles,), (4, 5, 6, 2, 3), (rows, parts, vectors, unit_of(natural)), constants, tile.warps
    )
    return Plan((folding, adding), (parts * rows, parts * rows, parts * rows * dim))
