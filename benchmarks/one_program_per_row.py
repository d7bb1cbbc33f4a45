"""The merge as courses teach it: one program merges one row of one head. A baseline for benchmarks/merge.py."""

from __future__ import annotations

import torch
import triton
import triton.language as tl


@triton.jit
def row_kernel(v_a, s_a, v_b, s_b, v_out, s_out, heads, D: tl.constexpr):
    """One program merges one row of one head."""
    row, head = tl.program_id(0), tl.program_id(1)
    state = row * heads + head
    a, b = tl.load(s_a + state), tl.load(s_b + state)
    m = tl.maximum(a, b)
    w_a, w_b = tl.exp2(a - m), tl.exp2(b - m)
    d = w_a + w_b
    at = state * D + tl.arange(0, D)
    v = (w_a * tl.load(v_a + at) + w_b * tl.load(v_b + at)) / d
    tl.store(v_out + at, v)
    tl.store(s_out + state, m + tl.log2(d))


def merge_state(
    v_a: torch.Tensor, s_a: torch.Tensor, v_b: torch.Tensor, s_b: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """(v, s) of contiguous v [S, H, D], D a power of two, and float32 s [S, H] in base 2."""
    positions, heads, dim = v_a.shape
    v, s = torch.empty_like(v_a), torch.empty_like(s_a)
    row_kernel[positions, heads](v_a, s_a, v_b, s_b, v, s, heads, D=dim)
    return v, s
