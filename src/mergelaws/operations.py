"""The four public operations on attention states.

A state (v, s) is the normalised attention output v over a set of keys and the log-sum-exp s of their scores. s is in base
2 unless `lse_base="e"`. The state of no keys is (0, -inf): s = -inf makes a state empty, whatever its v holds.

v is float16, bfloat16 or float32; s is float32; arithmetic is float32. Strides are free. For the special values and the
laws that hold see docs/semantics.md; for the error bound, docs/numerics.md.
"""

from __future__ import annotations

import torch

from mergelaws import arguments
from mergelaws.kernels import plans


def merge_state(
    v_a: torch.Tensor, s_a: torch.Tensor, v_b: torch.Tensor, s_b: torch.Tensor, *, lse_base: int | str = 2
) -> tuple[torch.Tensor, torch.Tensor]:
    """Merges two states of the same queries over disjoint key sets: the state over all their keys.

    v_a, v_b: [S, H, D], of one dtype. s_a, s_b: float32 [S, H], logarithms in base `lse_base` (2 or "e").
    Returns new contiguous (v [S, H, D] in the dtype of v_a, s float32 [S, H]).

    With m = max(s_a, s_b) and w = 2^(s - m): v = (w_a v_a + w_b v_b) / (w_a + w_b), s = m + log2(w_a + w_b).
    Commutative bit for bit; merging with an empty state (s = -inf) returns the other one bit for bit. A row with NaN or
    +inf in s becomes (NaN, NaN).

    Raises TypeError for a wrong type or dtype and ValueError for a wrong shape, device or base; see `mergelaws.arguments`.
    """
    natural = arguments.natural_base(lse_base)
    if not torch.compiler.is_compiling():
        merged = plans.two_states_again(v_a, s_a, v_b, s_b, natural)
        if merged is not None:
            return merged
    arguments.check_v("v_a", v_a, "[S, H, D]")
    arguments.check_s("s_a", s_a, "v_a", v_a)
    arguments.check_pair("v_b", v_b, "v_a", v_a)
    arguments.check_s("s_b", s_b, "v_a", v_a)
    if torch.compiler.is_compiling():
        return torch.ops.mergelaws.merge_state(v_a, s_a, v_b, s_b, natural)  # type: ignore[no-any-return]
    return new_merge_state(v_a, s_a, v_b, s_b, natural)


def merge_state_in_place(
    v: torch.Tensor,
    s: torch.Tensor,
    v_other: torch.Tensor,
    s_other: torch.Tensor,
    mask: torch.Tensor | None = None,
    *,
    lse_base: int | str = 2,
) -> None:
    """Merges the state (v_other, s_other) into (v, s), which is overwritten.

    v, v_other: [S, H, D], of one dtype. s, s_other: float32 [S, H], logarithms in base `lse_base` (2 or "e").
    mask: bool [S] or None; rows where it is False keep their bits. The values are those of `merge_state`, bit for bit.

    Raises what `merge_state` raises, and ValueError if v or s overlaps itself or shares memory with another argument
    without being the very same view; nothing is written then.
    """
    natural = arguments.natural_base(lse_base)
    if not torch.compiler.is_compiling() and plans.two_states_in_place_again(v, s, v_other, s_other, mask, natural):
        return
    arguments.check_v("v", v, "[S, H, D]")
    arguments.check_s("s", s, "v", v)
    arguments.check_pair("v_other", v_other, "v", v)
    arguments.check_s("s_other", s_other, "v", v)
    arguments.check_mask(mask, v)
    if torch.compiler.is_compiling():
        torch.ops.mergelaws.merge_state_in_place(v, s, v_other, s_other, mask, natural)
        return
    others = {"v_other": v_other, "s_other": s_other} | ({} if mask is None else {"mask": mask})
    arguments.check_writable({"v": v, "s": s}, others)
    plans.merge_two_states(v, s, v_other, s_other, v, s, mask, natural)


def merge_states(v: torch.Tensor, s: torch.Tensor, *, lse_base: int | str = 2) -> tuple[torch.Tensor, torch.Tensor]:
    """Merges the N states of every row.

    v: [S, N, H, D] with N before H; s: float32 [S, N, H], logarithms in base `lse_base` (2 or "e"). N may be 0.
    Returns new contiguous (v [S, H, D] in the dtype of v, s float32 [S, H]).

    With m = max s_i and w_i = 2^(s_i - m): v = sum w_i v_i / sum w_i, s = m + log2 sum w_i. One non-empty state among N
    is returned bit for bit. The order of summation depends on N alone, so a row has the same bits in any batch.

    Raises TypeError for a wrong type or dtype and ValueError for a wrong shape, device or base; see `mergelaws.arguments`.
    """
    natural = arguments.natural_base(lse_base)
    if not torch.compiler.is_compiling():
        merged = plans.many_states_again(v, s, natural)
        if merged is not None:
            return merged
    arguments.check_v("v", v, "[S, N, H, D]")
    arguments.check_s("s", s, "v", v)
    if torch.compiler.is_compiling():
        return torch.ops.mergelaws.merge_states(v, s, natural)  # type: ignore[no-any-return]
    return new_merge_states(v, s, natural)


def variable_length_merge_states(
    v: torch.Tensor, s: torch.Tensor, indptr: torch.Tensor, *, lse_base: int | str = 2
) -> tuple[torch.Tensor, torch.Tensor]:
    """Merges each segment of a list of states: row i merges the states indptr[i] .. indptr[i + 1] - 1.

    v: [nnz, H, D]; s: float32 [nnz, H], logarithms in base `lse_base` (2 or "e"); indptr: int32 or int64 [S + 1], not
    decreasing, within [0, nnz]. Returns new contiguous (v [S, H, D] in the dtype of v, s float32 [S, H]). An empty
    segment gives (0, -inf). A segment of N states has the bits of `merge_states` on those N states.

    Raises what `merge_states` raises, and ValueError if indptr decreases or leaves [0, nnz]. That check reads indptr back
    from the device, once for a tensor and its version (see `mergelaws.indptr`). While a CUDA graph is being captured nothing
    is read, and a bad segment gives (NaN, NaN) instead. The graph may be replayed with other values in indptr.
    """
    natural = arguments.natural_base(lse_base)
    if not torch.compiler.is_compiling():
        merged = plans.segments_again(v, s, indptr, natural)
        if merged is not None:
            return merged
    arguments.check_v("v", v, "[nnz, H, D]")
    arguments.check_s("s", s, "v", v)
    arguments.check_indptr(indptr, v)
    if torch.compiler.is_compiling():
        return torch.ops.mergelaws.variable_length_merge_states(v, s, indptr, natural)  # type: ignore[no-any-return]
    return new_merge_segments(v, s, indptr, natural)


def new_merge_state(
    v_a: torch.Tensor, s_a: torch.Tensor, v_b: torch.Tensor, s_b: torch.Tensor, natural: bool
) -> tuple[torch.Tensor, torch.Tensor]:
    """`merge_state` on checked arguments."""
    v = torch.empty(v_a.shape, dtype=v_a.dtype, device=v_a.device)
    s = torch.empty(s_a.shape, dtype=torch.float32, device=v_a.device)
    plans.merge_two_states(v_a, s_a, v_b, s_b, v, s, None, natural)
    return v, s


def new_merge_states(v: torch.Tensor, s: torch.Tensor, natural: bool) -> tuple[torch.Tensor, torch.Tensor]:
    """`merge_states` on checked arguments."""
    positions, _, heads, dim = v.shape
    v_out = torch.empty(positions, heads, dim, dtype=v.dtype, device=v.device)
    s_out = torch.empty(positions, heads, dtype=torch.float32, device=v.device)
    plans.merge_many_states(v, s, v_out, s_out, natural)
    return v_out, s_out


def new_merge_segments(
    v: torch.Tensor, s: torch.Tensor, indptr: torch.Tensor, natural: bool
) -> tuple[torch.Tensor, torch.Tensor]:
    """`variable_length_merge_states` on arguments whose types and shapes are checked; checks the values of indptr."""
    segments, heads, dim = indptr.shape[0] - 1, v.shape[1], v.shape[2]
    v_out = torch.empty(segments, heads, dim, dtype=v.dtype, device=v.device)
    s_out = torch.empty(segments, heads, dtype=torch.float32, device=v.device)
    plans.merge_segments(v, s, indptr, v_out, s_out, natural)
    return v_out, s_out
