"""The merges, each in two ways: planned anew, for any arguments that passed the checks, and again, as an earlier call was.

A merge that is done again finds its plan by what `kept` knows of it; it needs no check but those of addresses and of the
values of indptr. How it is found is written out four times: the host time of a call is what this file is for, and a function
that takes any number of tensors costs a good part of what is saved.
"""

from __future__ import annotations

import torch

from mergelaws.indptr import ends_of, last_known
from mergelaws.kernels.dense import many_states
from mergelaws.kernels.kept import calls_under, empty_on_cuda, holds, keep
from mergelaws.kernels.launching import stream_of
from mergelaws.kernels.segments import segments_of
from mergelaws.kernels.tuning import segment_kind
from mergelaws.kernels.two_states import two_states

State = tuple[torch.Tensor, torch.Tensor]


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
    in_place = v_out is v_a or s_out is s_a or v_out is v_b or s_out is s_b
    plan = two_states(v_a, s_a, v_b, s_b, v_out, s_out, mask, natural, in_place)
    plan.run(v_a, s_a, v_b, s_b, v_out, s_out, s_out if mask is None else mask)
    given, values = [v_a, s_a, v_b, s_b], [v_a, v_b]
    if not in_place and mask is None:
        keep(("merge_state", natural, v_a.shape), given, values, plan, None)
    elif v_out is v_a and s_out is s_a:
        given += [] if mask is None else [mask]
        keep(("merge_state_in_place", natural, mask is None, v_a.shape), given, values, plan, None)


def merge_many_states(
    v: torch.Tensor, s: torch.Tensor, v_out: torch.Tensor, s_out: torch.Tensor, natural: bool
) -> None:
    """Writes the merge over N of v [S, N, H, D], s [S, N, H] to contiguous v_out [S, H, D], s_out [S, H]."""
    plan = many_states(v, s, natural)
    plan.run(v, s, v_out, s_out)
    keep(("merge_states", natural, v.shape), [v, s], [v], plan, None)


def merge_segments(
    v: torch.Tensor, s: torch.Tensor, indptr: torch.Tensor, v_out: torch.Tensor, s_out: torch.Tensor, natural: bool
) -> None:
    """Writes the merge of the segments of v [nnz, H, D], s [nnz, H] to contiguous v_out [S, H, D], s_out [S, H].

    indptr [S + 1]; raises ValueError if it decreases or leaves [0, nnz], unless a CUDA graph is being captured.
    """
    kind = _kind_of(v, indptr)
    plan = segments_of(v, s, indptr, natural, *kind)
    plan.run(v, s, indptr, v_out, s_out)
    keep(("variable_length_merge_states", natural, v.shape), [v, s, indptr], [v], plan, kind)


def two_states_again(
    v_a: torch.Tensor, s_a: torch.Tensor, v_b: torch.Tensor, s_b: torch.Tensor, natural: bool
) -> State | None:
    """`merge_state` for arguments like earlier ones; None, having done nothing, for others."""
    if type(v_a) is not torch.Tensor:
        return None
    for kept in calls_under(("merge_state", natural, v_a.shape)):
        if kept.is_like(v_a, s_a, v_b, s_b):
            at_a, at_b = v_a.data_ptr(), v_b.data_ptr()
            if kept.is_aligned(at_a, at_b):
                break
    else:
        return None
    at_s_a, at_s_b, reach, stream = s_a.data_ptr(), s_b.data_ptr(), kept.reach, stream_of(v_a)
    if (
        stream is None
        or not holds(v_a, at_a, reach[0])
        or not holds(s_a, at_s_a, reach[1])
        or not holds(v_b, at_b, reach[2])
        or not holds(s_b, at_s_b, reach[3])
    ):
        return None
    v, s = _outputs(v_a, *v_a.shape)
    out = s.data_ptr()
    kept.plans[None].run_at(stream, (at_a, at_s_a, at_b, at_s_b, v.data_ptr(), out, out), s)
    return v, s


def two_states_in_place_again(
    v: torch.Tensor,
    s: torch.Tensor,
    v_other: torch.Tensor,
    s_other: torch.Tensor,
    mask: torch.Tensor | None,
    natural: bool,
) -> bool:
    """`merge_state_in_place` for arguments like earlier ones, none of which share memory; False if nothing was done."""
    if type(v) is not torch.Tensor:
        return False
    given = (v, s, v_other, s_other) if mask is None else (v, s, v_other, s_other, mask)
    for kept in calls_under(("merge_state_in_place", natural, mask is None, v.shape)):
        if kept.is_like(*given):
            at_v, at_other = v.data_ptr(), v_other.data_ptr()
            if kept.is_aligned(at_v, at_other):
                break
    else:
        return False
    at_s, at_s_other, reach, stream = s.data_ptr(), s_other.data_ptr(), kept.reach, stream_of(v)
    at_mask = at_s if mask is None else mask.data_ptr()
    if (
        stream is None
        or not holds(v, at_v, reach[0])
        or not holds(s, at_s, reach[1])
        or not holds(v_other, at_other, reach[2])
        or not holds(s_other, at_s_other, reach[3])
        or (mask is not None and not holds(mask, at_mask, reach[4]))
        or not _are_apart((at_v, at_s, at_other, at_s_other, at_mask), reach)
    ):
        return False
    kept.plans[None].run_at(stream, (at_v, at_s, at_other, at_s_other, at_v, at_s, at_mask), s)
    return True


def many_states_again(v: torch.Tensor, s: torch.Tensor, natural: bool) -> State | None:
    """`merge_states` for arguments like earlier ones; None, having done nothing, for others."""
    if type(v) is not torch.Tensor:
        return None
    for kept in calls_under(("merge_states", natural, v.shape)):
        if kept.is_like(v, s):
            at_v = v.data_ptr()
            if kept.is_aligned(at_v):
                break
    else:
        return None
    at_s, reach, stream = s.data_ptr(), kept.reach, stream_of(v)
    if stream is None or not holds(v, at_v, reach[0]) or not holds(s, at_s, reach[1]):
        return None
    positions, _, heads, dim = v.shape
    v_out, s_out = _outputs(v, positions, heads, dim)
    kept.plans[None].run_at(stream, (at_v, at_s, v_out.data_ptr(), s_out.data_ptr()), s_out)
    return v_out, s_out


def segments_again(v: torch.Tensor, s: torch.Tensor, indptr: torch.Tensor, natural: bool) -> State | None:
    """`variable_length_merge_states` for arguments like earlier ones; None, having done nothing, for others."""
    if type(v) is not torch.Tensor:
        return None
    for kept in calls_under(("variable_length_merge_states", natural, v.shape)):
        if kept.is_like(v, s, indptr):
            at_v = v.data_ptr()
            if kept.is_aligned(at_v):
                break
    else:
        return None
    at_s, at_indptr, reach, stream = s.data_ptr(), indptr.data_ptr(), kept.reach, stream_of(v)
    if (
        stream is None
        or not holds(v, at_v, reach[0])
        or not holds(s, at_s, reach[1])
        or not holds(indptr, at_indptr, reach[2])
    ):
        return None
    plan = kept.plans.get(_kind_of(v, indptr))
    if plan is None:
        return None
    _, heads, dim = v.shape
    v_out, s_out = _outputs(v, indptr.shape[0] - 1, heads, dim)
    plan.run_at(stream, (at_v, at_s, at_indptr, v_out.data_ptr(), s_out.data_ptr()), s_out)
    return v_out, s_out


def _outputs(v: torch.Tensor, positions: int, heads: int, dim: int) -> State:
    """New contiguous v [S, H, D] and s [S, H] on the current device, in the way that costs least on the host."""
    return (
        empty_on_cuda((positions, heads, dim), (heads * dim, dim, 1), v.dtype),
        empty_on_cuda((positions, heads), (heads, 1), torch.float32),
    )


def _kind_of(v: torch.Tensor, indptr: torch.Tensor) -> tuple[int, int]:
    """(batch, slots) for `segments_of`: right for any indptr, and good for one like what is known of this one."""
    items, heads, dim = v.shape
    count = indptr.shape[0] - 1
    lanes = count * heads * dim * v.element_size() // 16
    if v.is_cuda and torch.cuda.is_current_stream_capturing():
        last = last_known(indptr)
        return segment_kind(lanes, count, items, items if last is None else last.longest, None)
    ends = ends_of(indptr, items)
    return segment_kind(lanes, count, items, ends.longest, ends.chunks)


def _are_apart(addresses: tuple[int, ...], reach: tuple[int, ...]) -> bool:
    """Whether the stretches of memory that the first two tensors lie in hold nothing of another tensor."""
    for i in (0, 1):
        begin, end = addresses[i], addresses[i] + reach[i]
        for j in range(i + 1, len(reach)):
            if addresses[j] < end and begin < addresses[j] + reach[j]:
                return False
    return True
