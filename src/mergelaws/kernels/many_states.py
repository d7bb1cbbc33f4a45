"""Merging N states of a row, dense (N the same for all rows) or ragged (segments of a list).

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

from mergelaws.kernels.inlining import inlined
from mergelaws.kernels.launching import launch
from mergelaws.kernels.logarithm import log_of, weight_of
from mergelaws.kernels.rounding import rounded, widened
from mergelaws.kernels.tuning import LEAST_CHUNK, MOST_CHUNKS, chunk_of, many_state_tile, shares_chunks

SCAN = tl.constexpr(16)


@inlined
def peak_of(at_s, stride_n, first, stop, width, BLOCK_R: tl.constexpr):
    """The largest s of the states first..stop-1 of each row, `width` at most; NaN where an s is NaN or +inf; [BLOCK_R]."""
    peak = tl.full([BLOCK_R], float("-inf"), tl.float32)
    for begin in range(0, width, SCAN):
        state = first[:, None] + (begin + tl.arange(0, SCAN))[None, :]  # [BLOCK_R, SCAN]
        s = tl.load(at_s[:, None] + state * stride_n, mask=state < stop[:, None], other=float("-inf"))
        peak = tl.maximum(peak, tl.max(tl.where(s != s, float("inf"), s), axis=1))
    return tl.where(peak == float("inf"), float("nan"), peak)


@inlined
def negative_zeros(BLOCK_R: tl.constexpr, BLOCK_D: tl.constexpr):
    """What a sum starts from: -0.0 + x is x, for x = -0.0 too. `tl.full` would make a +0.0 of a -0.0."""
    return tl.full([BLOCK_R, BLOCK_D], 0.0, tl.float32) * -1.0


@inlined
def fold_chunk(
    at_v, at_s, v_n, s_n, m, first, stop, width, inside,
    NATURAL: tl.constexpr, BLOCK_R: tl.constexpr, BLOCK_D: tl.constexpr,
):  # fmt: skip
    """(d, acc) of the states first..stop-1, whose largest s is m: [BLOCK_R] and [BLOCK_R, BLOCK_D]."""
    d = tl.full([BLOCK_R], 0.0, tl.float32)
    acc = negative_zeros(BLOCK_R, BLOCK_D)
    for i in range(0, width):
        state = first + i  # [BLOCK_R]
        s = tl.load(at_s + state * s_n, mask=state < stop, other=float("-inf"))
        filled = s != float("-inf")  # an empty state's v is not looked at
        w = tl.where(filled, weight_of(s - m, NATURAL), 0.0)
        v = tl.load(at_v + (state * v_n)[:, None], mask=inside & filled[:, None], other=0.0)
        weight = tl.broadcast_to(w[:, None], (BLOCK_R, BLOCK_D))
        acc = tl.where(filled[:, None], tl.fma(weight, widened(v), acc), acc)
        d += w
    return d, acc


@inlined
def add_partial(total_d, total, peak, m, d, acc, NATURAL: tl.constexpr, BLOCK_R: tl.constexpr, BLOCK_D: tl.constexpr):
    """The running sums with one more partial state, brought from its own largest s to the row's."""
    filled = m != float("-inf")
    scale = tl.where(filled, weight_of(m - peak, NATURAL), 0.0)
    factor = tl.broadcast_to(scale[:, None], (BLOCK_R, BLOCK_D))
    total = tl.where(filled[:, None], tl.fma(factor, acc, total), total)
    total_d = tl.where(filled, tl.fma(scale, d, total_d), total_d)
    return total_d, total


@inlined
def store_row(at_v, at_s, total_d, total, peak, wanted, inside, stores_s, NATURAL: tl.constexpr):
    """Writes the state whose sums are complete: (NaN, NaN) if an s was no LSE, (0, -inf) if all states were empty."""
    poisoned = peak != peak
    empty = peak == float("-inf")
    v = total * tl.div_rn(1.0, tl.where(empty, 1.0, total_d))[:, None]
    v = tl.where(empty[:, None], 0.0, v)
    v = tl.where(poisoned[:, None] | (v != v), float("nan"), v)
    s = tl.where(empty | poisoned, peak, peak + log_of(total_d, NATURAL))
    s = tl.where(total_d == 1.0, peak, s)  # one state left: its s as it was, -0.0 too
    tl.store(at_v, rounded(v, at_v.dtype.element_ty), mask=inside)
    if stores_s:
        tl.store(at_s, s, mask=wanted)


@triton.jit
def all_chunks_kernel(
    v, s, v_out, s_out, indptr,
    rows, heads, states, chunk, items,
    v_s, v_n, v_h, v_d, s_s, s_n, s_h,
    vo_s, vo_h, vo_d, so_s, so_h, ip_s,
    D: tl.constexpr, NATURAL: tl.constexpr, RAGGED: tl.constexpr, LEAST_CHUNK: tl.constexpr, MOST_CHUNKS: tl.constexpr,
    BLOCK_R: tl.constexpr, BLOCK_D: tl.constexpr,
):  # fmt: skip
    """One program merges all states of a tile of rows."""
    row = tl.program_id(0).to(tl.int64) * BLOCK_R + tl.arange(0, BLOCK_R)  # [BLOCK_R]
    column = (tl.program_id(1) * BLOCK_D + tl.arange(0, BLOCK_D)).to(tl.int64)  # [BLOCK_D]
    position, head = row // heads, row % heads
    wanted = row < rows
    inside = wanted[:, None] & (column < D)[None, :]
    if RAGGED:
        begin = tl.load(indptr + position * ip_s, mask=wanted, other=0).to(tl.int64)
        end = tl.load(indptr + (position + 1) * ip_s, mask=wanted, other=0).to(tl.int64)
        broken = (begin < 0) | (end < begin) | (end > items)
        begin = tl.where(broken, 0, begin)
        count = tl.where(broken, 0, end - begin)  # [BLOCK_R]
        states = tl.max(count, axis=0)
        chunks = tl.full([BLOCK_R], LEAST_CHUNK, tl.int64)
        chunk = LEAST_CHUNK  # as large as any row's
        while chunk * MOST_CHUNKS < states:
            chunks = tl.where(chunk * MOST_CHUNKS < count, 2 * chunk, chunks)
            chunk *= 2
        at_v = v + begin * v_n + head * v_h
        at_s = s + begin * s_n + head * s_h
        parts = tl.max((count + chunks - 1) // chunks, axis=0)
    else:
        count = tl.where(wanted, states, 0).to(tl.int64)
        chunks = tl.full([BLOCK_R], 1, tl.int64) * chunk
        at_v = v + position * v_s + head * v_h
        at_s = s + position * s_s + head * s_h
        parts = (states + chunk - 1) // chunk
    at_v = at_v[:, None] + (column * v_d)[None, :]  # [BLOCK_R, BLOCK_D]

    peak = peak_of(at_s, s_n, count * 0, count, states, BLOCK_R)
    if RAGGED:
        peak = tl.where(broken, float("nan"), peak)  # an indptr that points nowhere must not give a number
    total_d = tl.full([BLOCK_R], 0.0, tl.float32)
    total = negative_zeros(BLOCK_R, BLOCK_D)
    for part in range(0, parts):
        first = part * chunks
        stop = tl.minimum(first + chunks, count)
        width = tl.minimum(states, chunk)
        m = peak
        if parts > 1:
            m = peak_of(at_s, s_n, first, stop, width, BLOCK_R)
        d, acc = fold_chunk(at_v, at_s, v_n, s_n, m, first, stop, width, inside, NATURAL, BLOCK_R, BLOCK_D)
        total_d, total = add_partial(total_d, total, peak, m, d, acc, NATURAL, BLOCK_R, BLOCK_D)
    out_v = v_out + (position * vo_s + head * vo_h)[:, None] + (column * vo_d)[None, :]
    out_s = s_out + position * so_s + head * so_h
    store_row(out_v, out_s, total_d, total, peak, wanted, inside, tl.program_id(1) == 0, NATURAL)


@triton.jit
def one_chunk_kernel(
    v, s, part_m, part_d, part_acc,
    rows, heads, states, chunk,
    v_s, v_n, v_h, v_d, s_s, s_n, s_h,
    D: tl.constexpr, NATURAL: tl.constexpr, BLOCK_R: tl.constexpr, BLOCK_D: tl.constexpr,
):  # fmt: skip
    """First stage: one program folds one chunk of a tile of rows; parts are [chunks, rows(, D)] in float32."""
    row = tl.program_id(0).to(tl.int64) * BLOCK_R + tl.arange(0, BLOCK_R)  # [BLOCK_R]
    part = tl.program_id(1)
    column = (tl.program_id(2) * BLOCK_D + tl.arange(0, BLOCK_D)).to(tl.int64)  # [BLOCK_D]
    position, head = row // heads, row % heads
    wanted = row < rows
    inside = wanted[:, None] & (column < D)[None, :]
    at_v = v + (position * v_s + head * v_h)[:, None] + (column * v_d)[None, :]  # [BLOCK_R, BLOCK_D]
    at_s = s + position * s_s + head * s_h
    first = tl.full([BLOCK_R], 1, tl.int64) * (part * chunk)
    stop = tl.where(wanted, tl.minimum(first + chunk, states), 0)
    m = peak_of(at_s, s_n, first, stop, chunk, BLOCK_R)
    d, acc = fold_chunk(at_v, at_s, v_n, s_n, m, first, stop, chunk, inside, NATURAL, BLOCK_R, BLOCK_D)
    at = part.to(tl.int64) * rows + row
    if tl.program_id(2) == 0:
        tl.store(part_m + at, m, mask=wanted)
        tl.store(part_d + at, d, mask=wanted)
    tl.store(part_acc + (at * D)[:, None] + column[None, :], acc, mask=inside)


@triton.jit
def add_parts_kernel(
    part_m, part_d, part_acc, v_out, s_out,
    rows, heads, parts,
    vo_s, vo_h, vo_d, so_s, so_h,
    D: tl.constexpr, NATURAL: tl.constexpr, BLOCK_R: tl.constexpr, BLOCK_D: tl.constexpr,
):  # fmt: skip
    """Second stage: adds the partial states of a tile of rows, in the order and with the arithmetic of one program."""
    row = tl.program_id(0).to(tl.int64) * BLOCK_R + tl.arange(0, BLOCK_R)  # [BLOCK_R]
    column = (tl.program_id(1) * BLOCK_D + tl.arange(0, BLOCK_D)).to(tl.int64)  # [BLOCK_D]
    position, head = row // heads, row % heads
    wanted = row < rows
    inside = wanted[:, None] & (column < D)[None, :]

    count = tl.where(wanted, parts, 0).to(tl.int64)
    peak = peak_of(part_m + row, rows, count * 0, count, parts, BLOCK_R)  # a NaN part makes the row NaN
    total_d = tl.full([BLOCK_R], 0.0, tl.float32)
    total = negative_zeros(BLOCK_R, BLOCK_D)
    for part in range(0, parts):
        at = tl.cast(part, tl.int64) * rows + row
        m = tl.load(part_m + at, mask=wanted, other=float("-inf"))
        d = tl.load(part_d + at, mask=wanted, other=0.0)
        acc = tl.load(part_acc + (at * D)[:, None] + column[None, :], mask=inside, other=0.0)
        total_d, total = add_partial(total_d, total, peak, m, d, acc, NATURAL, BLOCK_R, BLOCK_D)
    out_v = v_out + (position * vo_s + head * vo_h)[:, None] + (column * vo_d)[None, :]
    out_s = s_out + position * so_s + head * so_h
    store_row(out_v, out_s, total_d, total, peak, wanted, inside, tl.program_id(1) == 0, NATURAL)


def merge_many_states(
    v: torch.Tensor, s: torch.Tensor, v_out: torch.Tensor, s_out: torch.Tensor, natural: bool
) -> None:
    """Writes the merge over N of v [S, N, H, D], s [S, N, H] to v_out [S, H, D], s_out [S, H]."""
    positions, states, heads, dim = v.shape
    rows, chunk = positions * heads, chunk_of(states)
    if rows == 0:
        return
    block_r, block_d, warps = many_state_tile(rows, dim, v.element_size())
    row_tiles, column_tiles = triton.cdiv(rows, block_r), triton.cdiv(dim, block_d)
    tile = {"D": dim, "NATURAL": natural, "BLOCK_R": block_r, "BLOCK_D": block_d, "num_warps": warps}
    if not shares_chunks(rows, states):
        launch(
            all_chunks_kernel, (row_tiles, column_tiles), v.device,
            v, s, v_out, s_out, s_out,
            rows, heads, states, chunk, 0,
            *v.stride(), *s.stride(),
            *v_out.stride(), *s_out.stride(), 0,
            RAGGED=False, LEAST_CHUNK=0, MOST_CHUNKS=0, **tile,
        )  # fmt: skip
        return
    parts = triton.cdiv(states, chunk)
    part_m = torch.empty(parts, rows, dtype=torch.float32, device=v.device)
    part_d = torch.empty_like(part_m)
    part_acc = torch.empty(parts, rows, dim, dtype=torch.float32, device=v.device)
    launch(
        one_chunk_kernel, (row_tiles, parts, column_tiles), v.device,
        v, s, part_m, part_d, part_acc,
        rows, heads, states, chunk,
        *v.stride(), *s.stride(), **tile,
    )  # fmt: skip
    launch(
        add_parts_kernel, (row_tiles, column_tiles), v.device,
        part_m, part_d, part_acc, v_out, s_out,
        rows, heads, parts,
        *v_out.stride(), *s_out.stride(), **tile,
    )  # fmt: skip


def merge_segments(
    v: torch.Tensor, s: torch.Tensor, indptr: torch.Tensor, v_out: torch.Tensor, s_out: torch.Tensor, natural: bool
) -> None:
    """Writes the merge of each segment of v [nnz, H, D], s [nnz, H] to v_out [S, H, D], s_out [S, H]; indptr [S + 1].

    A segment whose ends are out of order or outside [0, nnz] gives (NaN, NaN) and reads nothing.
    """
    items, heads, dim = v.shape
    segments = indptr.shape[0] - 1
    if segments * heads == 0:
        return
    rows = segments * heads
    block_r, block_d, warps = many_state_tile(rows, dim, v.element_size())
    launch(
        all_chunks_kernel, (triton.cdiv(rows, block_r), triton.cdiv(dim, block_d)), v.device,
        v, s, v_out, s_out, indptr,
        rows, heads, 0, 0, items,
        0, *v.stride(), 0, *s.stride(),
        *v_out.stride(), *s_out.stride(), indptr.stride(0),
        D=dim, NATURAL=natural, RAGGED=True, LEAST_CHUNK=LEAST_CHUNK, MOST_CHUNKS=MOST_CHUNKS,
        BLOCK_R=block_r, BLOCK_D=block_d, num_warps=warps,
    )  # fmt: skip
