"""Plans by the shape of a call, so that a repeated call costs little on the host.

A plan is kept under everything that the checks of the public operations look at (types, dtypes, shapes, strides, devices)
and under the alignment of v, and is only kept for arguments that passed them. So a call that finds its plan needs no check
but those of addresses and of the values of indptr.
"""

from __future__ import annotations

from typing import NamedTuple

import torch

from mergelaws.indptr import ends_of, last_known
from mergelaws.kernels.dense import many_states
from mergelaws.kernels.plan import Plan
from mergelaws.kernels.segments import segments_of
from mergelaws.kernels.tuning import segment_kind
from mergelaws.kernels.two_states import two_states

Key = tuple[object, ...]
State = tuple[torch.Tensor, torch.Tensor]

ALIGNMENT = 15  # an access takes 16 bytes at most
MOST_PLANS = 4096


class Kept(NamedTuple):
    """A plan; in place, also how many bytes from its address on each of v, s, v_other, s_other and mask reaches."""

    plan: Plan
    reach: tuple[int, ...] = ()


KEPT: dict[Key, Kept] = {}
KINDS: dict[Key, dict[tuple[int, int], Plan]] = {}  # of ragged calls, by what is known of indptr


def forget() -> None:
    """Drops all plans: the next call of any shape makes its own."""
    KEPT.clear()
    KINDS.clear()


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
    if not in_place and mask is None:
        _keep(_key_of_two(v_a, s_a, v_b, s_b, natural), plan)
    elif v_out is v_a and s_out is s_a:
        given = (v_a, s_a, v_b, s_b) if mask is None else (v_a, s_a, v_b, s_b, mask)
        _keep(_key_in_place(v_a, s_a, v_b, s_b, mask, natural), plan, tuple(_reach(tensor) for tensor in given))


def merge_many_states(
    v: torch.Tensor, s: torch.Tensor, v_out: torch.Tensor, s_out: torch.Tensor, natural: bool
) -> None:
    """Writes the merge over N of v [S, N, H, D], s [S, N, H] to contiguous v_out [S, H, D], s_out [S, H]."""
    plan = many_states(v, s, natural)
    plan.run(v, s, v_out, s_out)
    _keep(_key_of_many(v, s, natural), plan)


def merge_segments(
    v: torch.Tensor, s: torch.Tensor, indptr: torch.Tensor, v_out: torch.Tensor, s_out: torch.Tensor, natural: bool
) -> None:
    """Writes the merge of the segments of v [nnz, H, D], s [nnz, H] to contiguous v_out [S, H, D], s_out [S, H].

    indptr [S + 1]; raises ValueError if it decreases or leaves [0, nnz], unless a CUDA graph is being captured.
    """
    kind = _kind_of(v, indptr)
    plan = segments_of(v, s, indptr, natural, *kind)
    plan.run(v, s, indptr, v_out, s_out)
    key = _key_of_segments(v, s, indptr, natural)
    if key is not None and plan.is_direct:
        if len(KINDS) >= MOST_PLANS:
            KINDS.clear()
        KINDS.setdefault(key, {})[kind] = plan


def two_states_again(
    v_a: torch.Tensor, s_a: torch.Tensor, v_b: torch.Tensor, s_b: torch.Tensor, natural: bool
) -> State | None:
    """`merge_state` for arguments like earlier ones; None, having done nothing, for others."""
    key = _key_of_two(v_a, s_a, v_b, s_b, natural)
    kept = KEPT.get(key) if key else None
    if kept is None:
        return None
    v = torch.empty_like(v_a, memory_format=torch.contiguous_format)
    s = torch.empty_like(s_a, memory_format=torch.contiguous_format)
    out = s.data_ptr()
    addresses = v_a.data_ptr(), s_a.data_ptr(), v_b.data_ptr(), s_b.data_ptr(), v.data_ptr(), out, out
    return (v, s) if kept.plan.run_at(s_a, addresses) else None


def two_states_in_place_again(
    v: torch.Tensor,
    s: torch.Tensor,
    v_other: torch.Tensor,
    s_other: torch.Tensor,
    mask: torch.Tensor | None,
    natural: bool,
) -> bool:
    """`merge_state_in_place` for arguments like earlier ones, none of which share memory; False if nothing was done."""
    key = _key_in_place(v, s, v_other, s_other, mask, natural)
    kept = KEPT.get(key) if key else None
    if kept is None:
        return False
    at_v, at_s = v.data_ptr(), s.data_ptr()
    addresses = [at_v, at_s, v_other.data_ptr(), s_other.data_ptr()]
    if mask is not None:
        addresses.append(mask.data_ptr())
    if not _are_apart(addresses, kept.reach):
        return False
    at_mask = at_s if mask is None else addresses[4]
    return kept.plan.run_at(s, (*addresses[:4], at_v, at_s, at_mask))


def many_states_again(v: torch.Tensor, s: torch.Tensor, natural: bool) -> State | None:
    """`merge_states` for arguments like earlier ones; None, having done nothing, for others."""
    key = _key_of_many(v, s, natural)
    kept = KEPT.get(key) if key else None
    if kept is None:
        return None
    positions, _, heads, dim = v.shape
    v_out, s_out = _outputs(v, s, positions, heads, dim)
    done = kept.plan.run_at(s, (v.data_ptr(), s.data_ptr(), v_out.data_ptr(), s_out.data_ptr()))
    return (v_out, s_out) if done else None


def segments_again(v: torch.Tensor, s: torch.Tensor, indptr: torch.Tensor, natural: bool) -> State | None:
    """`variable_length_merge_states` for arguments like earlier ones; None, having done nothing, for others."""
    key = _key_of_segments(v, s, indptr, natural)
    kinds = KINDS.get(key) if key else None
    plan = kinds.get(_kind_of(v, indptr)) if kinds else None
    if plan is None:
        return None
    _, heads, dim = v.shape
    v_out, s_out = _outputs(v, s, indptr.shape[0] - 1, heads, dim)
    addresses = v.data_ptr(), s.data_ptr(), indptr.data_ptr(), v_out.data_ptr(), s_out.data_ptr()
    return (v_out, s_out) if plan.run_at(s, addresses) else None


def _outputs(v: torch.Tensor, s: torch.Tensor, positions: int, heads: int, dim: int) -> State:
    """New contiguous v [S, H, D] and s [S, H]; `new_empty_strided` is what costs least on the host."""
    v_out = v.new_empty_strided((positions, heads, dim), (heads * dim, dim, 1))
    return v_out, s.new_empty_strided((positions, heads), (heads, 1))


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


def _key_of_two(
    v_a: torch.Tensor, s_a: torch.Tensor, v_b: torch.Tensor, s_b: torch.Tensor, natural: bool
) -> Key | None:
    if not (type(v_a) is type(s_a) is type(v_b) is type(s_b) is torch.Tensor):
        return None
    if v_a.is_neg() or s_a.is_neg() or v_b.is_neg() or s_b.is_neg():
        return None
    try:
        return (
            natural, v_a.data_ptr() & ALIGNMENT, v_b.data_ptr() & ALIGNMENT,
            v_a.dtype, v_a.shape, v_a.stride(), v_a.get_device(), s_a.dtype, s_a.shape, s_a.stride(), s_a.get_device(),
            v_b.dtype, v_b.shape, v_b.stride(), v_b.get_device(), s_b.dtype, s_b.shape, s_b.stride(), s_b.get_device(),
        )  # fmt: skip
    except RuntimeError:  # a sparse tensor has no strides, a tensor on meta no address
        return None


def _key_in_place(
    v: torch.Tensor,
    s: torch.Tensor,
    v_other: torch.Tensor,
    s_other: torch.Tensor,
    mask: torch.Tensor | None,
    natural: bool,
) -> Key | None:
    key = _key_of_two(v, s, v_other, s_other, natural)
    if key is None or mask is None:
        return key and (*key, None)
    if type(mask) is not torch.Tensor or mask.is_neg():
        return None
    return (*key, mask.dtype, mask.shape, mask.stride(), mask.get_device())


def _key_of_many(v: torch.Tensor, s: torch.Tensor, natural: bool) -> Key | None:
    if not (type(v) is type(s) is torch.Tensor) or v.is_neg() or s.is_neg():
        return None
    try:
        return (
            natural, v.data_ptr() & ALIGNMENT,
            v.dtype, v.shape, v.stride(), v.get_device(), s.dtype, s.shape, s.stride(), s.get_device(),
        )  # fmt: skip
    except RuntimeError:
        return None


def _key_of_segments(v: torch.Tensor, s: torch.Tensor, indptr: torch.Tensor, natural: bool) -> Key | None:
    key = _key_of_many(v, s, natural)
    if key is None or type(indptr) is not torch.Tensor:
        return None
    try:
        return (*key, indptr.dtype, indptr.shape, indptr.stride(), indptr.get_device())
    except RuntimeError:
        return None


def _keep(key: Key | None, plan: Plan, reach: tuple[int, ...] = ()) -> None:
    if key is None or not plan.is_direct:
        return
    if len(KEPT) >= MOST_PLANS:
        KEPT.clear()
    KEPT[key] = Kept(plan, reach)


def _reach(tensor: torch.Tensor) -> int:
    """The bytes from the first element of a tensor that is not empty to behind its last."""
    elements = 1 + sum(stride * (size - 1) for stride, size in zip(tensor.stride(), tensor.shape, strict=True))
    return elements * tensor.element_size()


def _are_apart(addresses: list[int], reach: tuple[int, ...]) -> bool:
    """Whether the stretches of memory that the first two tensors lie in hold nothing of another tensor."""
    for i in (0, 1):
        begin, end = addresses[i], addresses[i] + reach[i]
        for j in range(i + 1, len(reach)):
            if addresses[j] < end and begin < addresses[j] + reach[j]:
                return False
    return True
