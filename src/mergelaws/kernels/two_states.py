"""Merging two states, out of place and in place.

    m = max(s_a, s_b);  w = 2^(s - m);  v = (w_a v_a + w_b v_b) / (w_a + w_b);  s = m + log2(w_a + w_b)

The heavier state goes first, so that both orders are one computation: its weight is exactly 1, the other's is w <= 1.
The weights are divided by their sum before v is touched: no product exceeds its v, so nothing overflows on the way.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl

from mergelaws.kernels.lanes import at_elements, lanes_of, over_elements, width_of
from mergelaws.kernels.launching import Launch
from mergelaws.kernels.layout import constant_width, is_wide, steps_of, strides_in_vectors, vector_of
from mergelaws.kernels.logarithm import log_of, unit_of, weight_of
from mergelaws.kernels.overlapping import allow_successor, await_predecessor, overlaps_on
from mergelaws.kernels.plan import Plan
from mergelaws.kernels.rounding import rounded, widened
from mergelaws.kernels.tuning import two_state_tile

# No kernel is compiled for what these happen to be: whole vectors are aligned whatever the strides, counted in vectors.
POINTERS = ("v_a", "s_a", "v_b", "s_b", "v_out", "s_out", "mask")
INTEGERS = (
    "rows", "heads", "vectors",
    "va_s", "va_h", "va_d", "sa_s", "sa_h", "vb_s", "vb_h", "vb_d", "sb_s", "sb_h", "vo_s", "vo_h", "vo_d", "so_s", "so_h",
    "mask_s",
)  # fmt: skip


@triton.jit(do_not_specialize=INTEGERS, do_not_specialize_on_alignment=POINTERS)
def two_states_kernel(
    v_a, s_a, v_b, s_b, v_out, s_out, mask,
    rows, heads, vectors,
    va_s, va_h, va_d, sa_s, sa_h,
    vb_s, vb_h, vb_d, sb_s, sb_h,
    vo_s, vo_h, vo_d, so_s, so_h,
    mask_s, unit,
    VEC: tl.constexpr, VECTORS: tl.constexpr, LANES: tl.constexpr, WIDE: tl.constexpr,
    CONTIGUOUS: tl.constexpr, MASKED: tl.constexpr, IN_PLACE: tl.constexpr, OVERLAPS: tl.constexpr,
):  # fmt: skip
    """A program merges the two states of its lanes' rows; in place, its rows are whole."""
    allow_successor(OVERLAPS)
    width = width_of(vectors, VECTORS)
    if IN_PLACE:  # no other program may read the s of these rows after it is overwritten
        whole = LANES // width
        program, lane = tl.program_id(0), tl.arange(0, LANES)
        if WIDE:
            program = program.to(tl.int64)
        row, vector = program * whole + lane // width, lane % width  # [LANES]
        wanted = (row < rows) & (lane < whole * width)
    else:
        row, vector = lanes_of(tl.program_id(0), width, LANES, WIDE)  # [LANES]
        wanted = row < rows
    position, head = row // heads, row % heads
    if CONTIGUOUS:
        at_s_a, at_s_b, at_s_out = s_a + row, s_b + row, s_out + row
        base_a = row * width + vector
        base_b, base_out = base_a, base_a
    else:
        at_s_a = s_a + position * sa_s + head * sa_h
        at_s_b = s_b + position * sb_s + head * sb_h
        at_s_out = s_out + position * so_s + head * so_h
        base_a = position * va_s + head * va_h + vector * va_d
        base_b = position * vb_s + head * vb_h + vector * vb_d
        base_out = position * vo_s + head * vo_h + vector * vo_d

    await_predecessor(OVERLAPS)
    if MASKED:
        wanted &= tl.load(mask + position * mask_s, mask=wanted, other=0) != 0
    v_of_a = tl.load(at_elements(v_a, base_a, VEC), mask=wanted[:, None], other=0.0)  # [LANES, VEC]
    v_of_b = tl.load(at_elements(v_b, base_b, VEC), mask=wanted[:, None], other=0.0)
    a = tl.load(at_s_a, mask=wanted, other=float("-inf"))
    b = tl.load(at_s_b, mask=wanted, other=float("-inf"))
    b_first = b > a
    heavy, light = tl.where(b_first, b, a), tl.where(b_first, a, b)  # [LANES]

    poisoned = (a != a) | (b != b) | (heavy == float("inf"))
    one_left = light == float("-inf")
    none_left = heavy == float("-inf")
    w = tl.where(one_left, 0.0, weight_of(light - heavy, unit))  # the select keeps out (-inf) - (-inf)
    d = 1.0 + w
    p_heavy = tl.div_rn(1.0, d)
    p_light = w * p_heavy
    s = tl.where(one_left, heavy, heavy + log_of(d, unit))  # the select keeps -0.0
    s = tl.where(poisoned, float("nan"), s)

    v_heavy = tl.where(b_first[:, None], v_of_b, v_of_a)
    v_light = tl.where(b_first[:, None], v_of_a, v_of_b)
    v = tl.fma(over_elements(p_heavy, LANES, VEC), widened(v_heavy), p_light[:, None] * widened(v_light))
    v = tl.where(none_left[:, None], 0.0, v)
    v = tl.where(poisoned[:, None] | (v != v), float("nan"), v)  # one NaN: a payload would tell the operands' order
    out = rounded(v, v_out.dtype.element_ty)
    copied = one_left & ~none_left & ~poisoned  # the other state, bit for bit; garbage in the empty one is gone
    out = tl.where(copied[:, None], v_heavy, out)
    tl.store(at_elements(v_out, base_out, VEC), out, mask=wanted[:, None])

    if IN_PLACE:
        tl.debug_barrier()  # several lanes hold a copy of s: none may read it after another has written it
    tl.store(at_s_out, s, mask=wanted & (vector == 0))


def two_states(
    v_a: torch.Tensor,
    s_a: torch.Tensor,
    v_b: torch.Tensor,
    s_b: torch.Tensor,
    v_out: torch.Tensor,
    s_out: torch.Tensor,
    mask: torch.Tensor | None,
    natural: bool,
    in_place: bool,
) -> Plan:
    """How to write the merge of (v_a, s_a) and (v_b, s_b) to (v_out, s_out), in this order; v [S, H, D], s [S, H].

    The outputs may be the very views (v_a, s_a), (v_b, s_b), or both, if `in_place`. mask [S], bool: rows that are written;
    None for all, and s_out is then given in its place.
    """
    positions, heads, dim = v_a.shape
    rows = positions * heads
    if rows == 0:
        return Plan(())
    values, sums = (v_a, v_b, v_out), (s_a, s_b, s_out)
    vec = vector_of(*values)
    vectors = dim // vec
    tile = two_state_tile(rows * vectors, vec, vectors if in_place else 1)
    programs = triton.cdiv(rows, tile.lanes // vectors) if in_place else triton.cdiv(rows * vectors, tile.lanes)
    strides: list[int] = []
    for v, s in zip(values, sums, strict=True):
        strides += [*strides_in_vectors(v, vec), *steps_of(s)]
    constants = {
        "VEC": vec,
        "VECTORS": constant_width(vectors),
        "LANES": tile.lanes,
        "WIDE": is_wide(*values, *sums),
        "CONTIGUOUS": all(tensor.is_contiguous() for tensor in values + sums),
        "MASKED": mask is not None,
        "IN_PLACE": in_place,
        "OVERLAPS": overlaps_on(v_a.get_device()),
    }
    numbers = rows, heads, vectors, *strides, 0 if mask is None else mask.stride(0), unit_of(natural)
    return Plan((Launch(two_states_kernel, (programs,), (0, 1, 2, 3, 4, 5, 6), numbers, constants, tile.warps),))
