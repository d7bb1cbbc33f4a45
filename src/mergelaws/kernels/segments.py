"""Merging the segments of a list of states, each with the chunks, the order and so the bits of `dense`.

A first launch has a program for every few segments, and merges those of at most `alone` states. Longer ones go chunk by
chunk to the programs of a second launch, wherever in the list they are, and a third adds the partial states. These two read
indptr themselves: nothing is known of it on the host while a CUDA graph is captured, and a graph may be replayed with
another indptr. A segment whose ends are out of order or outside [0, nnz] reads nothing and gives (NaN, NaN).
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl

from mergelaws.kernels.inlining import inlined
from mergelaws.kernels.lanes import at_elements, lanes_of, width_of
from mergelaws.kernels.launching import Launch
from mergelaws.kernels.layout import constant_width, is_wide, steps_of, strides_in_vectors, vector_of
from mergelaws.kernels.logarithm import unit_of
from mergelaws.kernels.overlapping import allow_successor, await_predecessor, overlaps_on
from mergelaws.kernels.partial import partial_of, store_part, store_row, sum_of_chunks, sum_of_parts
from mergelaws.kernels.plan import Plan
from mergelaws.kernels.tuning import LEAST_CHUNK as _LEAST_CHUNK
from mergelaws.kernels.tuning import long_tile, longest_alone, part_tile, segment_tile, workers_of

LEAST_CHUNK = tl.constexpr(_LEAST_CHUNK)
BLOCK = tl.constexpr(1024)  # segments that a program looks at, at once

# No kernel is compiled for what these happen to be: whole vectors are aligned whatever the strides, counted in vectors.
POINTERS = ("v", "s", "v_out", "s_out", "part_m", "part_d", "part_acc", "indptr")
INTEGERS = (
    "rows", "segments", "heads", "items", "alone", "slots", "vectors", "v_n", "v_h", "v_d", "s_n", "s_h", "ip_s",
)  # fmt: skip


@inlined
def ends_of(indptr, ip_s, segment, items, wanted, WIDE: tl.constexpr):
    """(begin, count, broken) of segments; one that points outside the list is broken and has no states."""
    begin = tl.load(indptr + segment * ip_s, mask=wanted, other=0)
    end = tl.load(indptr + (segment + 1) * ip_s, mask=wanted, other=0)
    broken = (begin < 0) | (end < begin) | (end > items)
    begin = tl.where(broken, 0, begin)
    count = tl.where(broken, 0, end - begin)
    offset: tl.constexpr = tl.int64 if WIDE else tl.int32
    return begin.to(offset), count.to(offset), broken


@inlined
def chunks_of(count, longest):
    """(the chunk of each count, the chunk of the longest): what `tuning.chunk_of` says, on the device."""
    chunks = count * 0 + LEAST_CHUNK
    chunk = longest * 0 + LEAST_CHUNK
    while chunk < (longest + chunk - 1) // chunk:  # chunk * chunk might overflow
        chunks = tl.where(chunks < (count + chunks - 1) // chunks, 2 * chunks, chunks)
        chunk *= 2
    return chunks, chunk


@triton.jit(do_not_specialize=INTEGERS, do_not_specialize_on_alignment=POINTERS)
def short_segments_kernel(
    v, s, v_out, s_out, indptr,
    rows, heads, items, alone, vectors,
    v_n, v_h, v_d, s_n, s_h, ip_s, unit,
    VEC: tl.constexpr, VECTORS: tl.constexpr, LANES: tl.constexpr, WIDE: tl.constexpr,
    BATCH: tl.constexpr, SCAN: tl.constexpr, OVERLAPS: tl.constexpr,
):  # fmt: skip
    """A program merges all states of its lanes' segments, but for segments of more than `alone` states."""
    width = width_of(vectors, VECTORS)
    row, vector = lanes_of(tl.program_id(0), width, LANES, WIDE)  # [LANES]
    segment, head = row // heads, row % heads
    wanted = row < rows
    await_predecessor(OVERLAPS)
    begin, count, broken = ends_of(indptr, ip_s, segment, items, wanted, WIDE)
    wanted = wanted & (count <= alone)
    count = tl.where(wanted, count, 0)
    at_v = at_elements(v, begin * v_n + head * v_h + vector * v_d, VEC)  # [LANES, VEC]
    at_s = s + (begin * s_n + head * s_h)
    longest = tl.max(count, axis=0)
    if longest <= BATCH:
        peak, total_d, total = partial_of(
            at_v, at_s, v_n, s_n, count * 0, count, longest, wanted, unit, True, BATCH, SCAN, LANES, VEC
        )
    else:
        chunks, chunk = chunks_of(count, longest)
        parts = tl.max((count + chunks - 1) // chunks, axis=0)
        most = tl.minimum(chunk, longest)
        peak, total_d, total = sum_of_chunks(
            at_v, at_s, v_n, s_n, count, chunks, parts, most, longest, wanted, unit, False, BATCH, SCAN, LANES, VEC
        )
    allow_successor(OVERLAPS)
    peak = tl.where(broken, float("nan"), peak)  # an indptr that points nowhere must not give a number
    store_row(v_out, s_out, row, width, vector, peak, total_d, total, wanted, unit, VEC)


@inlined
def long_in_block(indptr, ip_s, block, segments, items, alone, WIDE: tl.constexpr):
    """Of BLOCK segments from `block` on: (is it long, how many chunks if so); [BLOCK] each."""
    segment = block + tl.arange(0, BLOCK)
    if WIDE:
        segment = segment.to(tl.int64)
    _begin, count, _broken = ends_of(indptr, ip_s, segment, items, segment < segments, WIDE)
    is_long = count > alone
    count = tl.where(is_long, count, 0)
    chunks, _chunk = chunks_of(count, tl.max(count, axis=0))
    return is_long, (count + chunks - 1) // chunks


@triton.jit(do_not_specialize=INTEGERS, do_not_specialize_on_alignment=POINTERS)
def long_segment_chunks_kernel(
    v, s, part_m, part_d, part_acc, indptr,
    segments, heads, items, alone, slots, vectors,
    v_n, v_h, v_d, s_n, s_h, ip_s, unit,
    VEC: tl.constexpr, VECTORS: tl.constexpr, LANES: tl.constexpr, WIDE: tl.constexpr,
    BATCH: tl.constexpr, SCAN: tl.constexpr, OVERLAPS: tl.constexpr,
):  # fmt: skip
    """The chunks of all long segments, in order, are dealt to the programs of grid dimension 0; dimension 1 shares lanes.

    Chunk p of them goes to slot p of part_m, part_d [slots, H] and part_acc [slots, H, D].
    """
    allow_successor(OVERLAPS)
    width = width_of(vectors, VECTORS)
    head, vector = lanes_of(tl.program_id(1), width, LANES, WIDE)  # [LANES]
    own = tl.program_id(0)  # the next chunk of this program
    before = own * 0  # chunks of the segments before this block
    if WIDE:
        own, before = own.to(tl.int64), before.to(tl.int64)
    await_predecessor(OVERLAPS)
    for block in range(0, segments, BLOCK):
        _long, parts = long_in_block(indptr, ip_s, block, segments, items, alone, WIDE)
        until = before + tl.cumsum(parts, axis=0)  # [BLOCK]
        total = before + tl.sum(parts, axis=0)
        while own < total:
            segment = block + tl.sum((until <= own).to(until.dtype), axis=0)
            begin, count, _broken = ends_of(indptr, ip_s, segment, items, segment < segments, WIDE)
            chunk, most = chunks_of(count, count)
            part = own - tl.maximum(before, tl.max(tl.where(until <= own, until, 0), axis=0))
            wanted = (head < heads) & (head * 0 + own < slots)
            at_v = at_elements(v, begin * v_n + head * v_h + vector * v_d, VEC)  # [LANES, VEC]
            at_s = s + (begin * s_n + head * s_h)
            first = head * 0 + part * chunk
            stop = tl.minimum(first + chunk, count)
            m, d, acc = partial_of(
                at_v, at_s, v_n, s_n, first, stop, most, wanted, unit, False, BATCH, SCAN, LANES, VEC
            )
            store_part(part_m, part_d, part_acc, own * heads + head, width, vector, m, d, acc, wanted, VEC)
            own += tl.num_programs(0)
        before = total


@triton.jit(do_not_specialize=INTEGERS, do_not_specialize_on_alignment=POINTERS)
def add_long_segments_kernel(
    part_m, part_d, part_acc, v_out, s_out, indptr,
    segments, heads, items, alone, slots, vectors,
    ip_s, unit,
    VEC: tl.constexpr, VECTORS: tl.constexpr, LANES: tl.constexpr, WIDE: tl.constexpr,
    BATCH: tl.constexpr, OVERLAPS: tl.constexpr,
):  # fmt: skip
    """Adds the partial states of the long segments, which are dealt to the programs as their chunks were."""
    allow_successor(OVERLAPS)
    width = width_of(vectors, VECTORS)
    head, vector = lanes_of(tl.program_id(1), width, LANES, WIDE)  # [LANES]
    own = tl.program_id(0)  # the next long segment of this program
    before = own * 0  # long segments before this block
    if WIDE:
        own, before = own.to(tl.int64), before.to(tl.int64)
    slot = before  # chunks before this block
    await_predecessor(OVERLAPS)
    for block in range(0, segments, BLOCK):
        is_long, parts = long_in_block(indptr, ip_s, block, segments, items, alone, WIDE)
        number = before + tl.cumsum(is_long.to(parts.dtype), axis=0)  # [BLOCK], from 1
        total = before + tl.sum(is_long.to(parts.dtype), axis=0)
        while own < total:
            index = tl.sum((number <= own).to(parts.dtype), axis=0)
            ahead = tl.arange(0, BLOCK)
            start = slot + tl.sum(tl.where(ahead < index, parts, 0), axis=0)
            count = tl.sum(tl.where(ahead == index, parts, 0), axis=0)
            wanted = head < heads
            first = head * 0 + start
            peak, total_d, acc = sum_of_parts(
                part_m, part_d, part_acc, first, count, heads, head, width, vector, count, wanted & (first + count <= slots),
                unit, False, BATCH, LANES, VEC,
            )  # fmt: skip
            # segments that overlap, in an indptr that falls, may have more chunks than there are slots
            peak = tl.where(first + count <= slots, peak, float("nan"))
            row = (head * 0 + block + index) * heads + head
            store_row(v_out, s_out, row, width, vector, peak, total_d, acc, wanted, unit, VEC)
            own += tl.num_programs(0)
        before = total
        slot += tl.sum(parts, axis=0)


def segments_of(v: torch.Tensor, s: torch.Tensor, indptr: torch.Tensor, natural: bool, batch: int, slots: int) -> Plan:
    """How to merge the segments of v [nnz, H, D], s [nnz, H], indptr [S + 1] into contiguous v_out [S, H, D], s_out [S, H].

    It is right whatever indptr holds. `batch`: how many states most segments have at most, as `tuning.segment_batch` has
    it. `slots`: how many chunks the segments may have that are too long for one program; with 0 of them every segment is
    merged by one program.
    """
    items, heads, dim = v.shape
    count = indptr.shape[0] - 1
    rows = count * heads
    if rows == 0:
        return Plan(())
    widest, unit = vector_of(v), unit_of(natural)
    tile = segment_tile(rows * dim, widest, batch)
    vectors = dim // tile.vec
    tiles = triton.cdiv(rows * vectors, tile.lanes)
    alone = longest_alone(rows * dim // widest) if slots else items  # nobody is longer than the list
    constants = {
        "VEC": tile.vec,
        "VECTORS": constant_width(vectors),
        "LANES": tile.lanes,
        "BATCH": tile.batch,
        "SCAN": tile.scan,
        "WIDE": is_wide(v, s, indptr, elements=max(rows, slots * heads) * dim),
        "OVERLAPS": overlaps_on(v.get_device()),
    }
    numbers = rows, heads, items, alone, vectors, *strides_in_vectors(v, tile.vec), *steps_of(s), indptr.stride(0), unit
    short = Launch(short_segments_kernel, (tiles,), (0, 1, 3, 4, 2), numbers, constants, tile.warps)
    if not slots:
        return Plan((short,))

    tile = long_tile(heads * dim, widest)
    vectors = dim // tile.vec
    tiles = triton.cdiv(heads * vectors, tile.lanes)
    constants |= {"VEC": tile.vec, "VECTORS": constant_width(vectors), "LANES": tile.lanes}
    constants |= {"BATCH": tile.batch, "SCAN": tile.scan}
    numbers = (
        count, heads, items, alone, slots, vectors,
        *strides_in_vectors(v, tile.vec), *steps_of(s), indptr.stride(0), unit,
    )  # fmt: skip
    on = 0, 1, 5, 6, 7, 2
    folding = Launch(long_segment_chunks_kernel, (workers_of(tiles), tiles), on, numbers, constants, tile.warps)

    tile = part_tile(heads, dim, 16)
    vectors = dim // tile.vec
    tiles = triton.cdiv(heads * vectors, tile.lanes)
    constants |= {"VEC": tile.vec, "VECTORS": constant_width(vectors), "LANES": tile.lanes, "BATCH": tile.batch}
    numbers = count, heads, items, alone, slots, vectors, indptr.stride(0), unit
    on = 5, 6, 7, 3, 4, 2
    adding = Launch(add_long_segments_kernel, (workers_of(tiles), tiles), on, numbers, constants, tile.warps)
    return Plan((short, folding, adding), (slots * heads, slots * heads, slots * heads * dim))
