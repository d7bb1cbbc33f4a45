"""Merging two states, out of place and in place.

    m = max(s_a, s_b);  w = 2^(s - m);  v = (w_a v_a + w_b v_b) / (w_a + w_b);  s = m + log2(w_a + w_b)

The heavier state goes first, so that both orders are one computation: its weight is exactly 1, the other's is w <= 1.
The weights are divided by their sum before v is touched: no product exceeds its v, so nothing overflows on the way.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl

from mergelaws.kernels.launching import launch
from mergelaws.kernels.logarithm import log_of, weight_of
from mergelaws.kernels.rounding import rounded, widened
from mergelaws.kernels.tuning import two_state_tile


@triton.jit
def two_states_kernel(
    v_a, s_a, v_b, s_b, v_out, s_out, mask,
    rows, heads,
    va_s, va_h, va_d, sa_s, sa_h,
    vb_s, vb_h, vb_d, sb_s, sb_h,
    vo_s, vo_h, vo_d, so_s, so_h,
    mask_s,
    D: tl.constexpr, NATURAL: tl.constexpr, MASKED: tl.constexpr, IN_PLACE: tl.constexpr,
    BLOCK_R: tl.constexpr, BLOCK_D: tl.constexpr,
):  # fmt: skip
    """One program merges a tile of rows."""
    row = tl.program_id(0).to(tl.int64) * BLOCK_R + tl.arange(0, BLOCK_R)  # [BLOCK_R]
    position, head = row // heads, row % heads
    wanted = row < rows
    if MASKED:
        wanted &= tl.load(mask + position * mask_s, mask=wanted, other=0) != 0

    a = tl.load(s_a + position * sa_s + head * sa_h, mask=wanted, other=float("-inf"))
    b = tl.load(s_b + position * sb_s + head * sb_h, mask=wanted, other=float("-inf"))
    b_first = b > a
    heavy, light = tl.where(b_first, b, a), tl.where(b_first, a, b)  # [BLOCK_R]

    poisoned = (a != a) | (b != b) | (heavy == float("inf"))
    one_left = light == float("-inf")
    none_left = heavy == float("-inf")
    w = tl.where(one_left, 0.0, weight_of(light - heavy, NATURAL))  # the select keeps out (-inf) - (-inf)
    d = 1.0 + w
    p_heavy = tl.div_rn(1.0, d)
    p_light = w * p_heavy
    s = tl.where(one_left, heavy, heavy + log_of(d, NATURAL))  # the select keeps -0.0
    s = tl.where(poisoned, float("nan"), s)

    for start in tl.static_range(0, D, BLOCK_D):
        column = (start + tl.arange(0, BLOCK_D)).to(tl.int64)  # [BLOCK_D]
        inside = wanted[:, None] & (column < D)[None, :]
        at_a = v_a + (position * va_s + head * va_h)[:, None] + (column * va_d)[None, :]  # [BLOCK_R, BLOCK_D]
        at_b = v_b + (position * vb_s + head * vb_h)[:, None] + (column * vb_d)[None, :]
        v_of_a = tl.load(at_a, mask=inside, other=0.0)
        v_of_b = tl.load(at_b, mask=inside, other=0.0)
        v_heavy = tl.where(b_first[:, None], v_of_b, v_of_a)
        v_light = tl.where(b_first[:, None], v_of_a, v_of_b)

        v = tl.fma(
            tl.broadcast_to(p_heavy[:, None], (BLOCK_R, BLOCK_D)),
            widened(v_heavy),
            p_light[:, None] * widened(v_light),
        )
        v = tl.where(none_left[:, None], 0.0, v)
        v = tl.where(poisoned[:, None] | (v != v), float("nan"), v)  # one NaN: a payload would tell the operands' order
        out = rounded(v, v_out.dtype.element_ty)
        copied = one_left & ~none_left & ~poisoned  # the other state, bit for bit; garbage in the empty one is gone
        out = tl.where(copied[:, None], v_heavy, out)
        at_out = v_out + (position * vo_s + head * vo_h)[:, None] + (column * vo_d)[None, :]
        tl.store(at_out, out, mask=inside)

    if IN_PLACE:
        tl.debug_barrier()  # several warps may hold a copy of s: none may read it after another has written it
    tl.store(s_out + position * so_s + head * so_h, s, mask=wanted)


def merge_two_states(
    v_a: torch.Tensor,
    s_a: torch.Tensor,
    v_b: torch.Tensor,
    s_b: torch.Tensor,
    v_out: torch.Tensor,
    s_out: torch.Tensor,
    mask: torch.Tensor | None,
    natural: bool,
) -> None:
    """Writes the merge of (v_a, s_a) and (v_b, s_b) to (v_out, s_out); v [S, H, D], s [S, H].

    The outputs may be the very views (v_a, s_a) or (v_b, s_b). mask [S], bool: rows that are written; None for all.
    """
    positions, heads, dim = v_a.shape
    rows = positions * heads
    if rows == 0 or dim == 0:
        return
    block_r, block_d, warps = two_state_tile(rows, dim, v_a.element_size())
    launch(
        two_states_kernel, (triton.cdiv(rows, block_r),), v_a.device,
        v_a, s_a, v_b, s_b, v_out, s_out, s_out if mask is None else mask,
        rows, heads,
        *v_a.stride(), *s_a.stride(),
        *v_b.stride(), *s_b.stride(),
        *v_out.stride(), *s_out.stride(),
        0 if mask is None else mask.stride(0),
        D=dim, NATURAL=natural, MASKED=mask is not None, IN_PLACE=s_out is s_a,
        BLOCK_R=block_r, BLOCK_D=block_d, num_warps=warps,
    )  # fmt: skip
