"""The operations as torch.library operators, which `torch.compile` and export see as one node each.

The public functions call them only while compiling: eager calls go straight to the kernels, which costs less.
"""

from __future__ import annotations

import torch

from mergelaws import arguments
from mergelaws.kernels.plans import merge_two_states
from mergelaws.operations import new_merge_segments, new_merge_state, new_merge_states

State = tuple[torch.Tensor, torch.Tensor]


@torch.library.custom_op("mergelaws::merge_state", mutates_args=())
def _merge_state(
    v_a: torch.Tensor, s_a: torch.Tensor, v_b: torch.Tensor, s_b: torch.Tensor, natural: bool
) -> tuple[torch.Tensor, torch.Tensor]:
    return new_merge_state(v_a, s_a, v_b, s_b, natural)


@_merge_state.register_fake
def _(v_a: torch.Tensor, s_a: torch.Tensor, v_b: torch.Tensor, s_b: torch.Tensor, natural: bool) -> State:
    return v_a.new_empty(v_a.shape), s_a.new_empty(s_a.shape)


@torch.library.custom_op("mergelaws::merge_state_in_place", mutates_args=("v", "s"))
def _merge_state_in_place(
    v: torch.Tensor,
    s: torch.Tensor,
    v_other: torch.Tensor,
    s_other: torch.Tensor,
    mask: torch.Tensor | None,
    natural: bool,
) -> None:
    others = {"v_other": v_other, "s_other": s_other} | ({} if mask is None else {"mask": mask})
    arguments.check_writable({"v": v, "s": s}, others)
    merge_two_states(v, s, v_other, s_other, v, s, mask, natural)


@torch.library.custom_op("mergelaws::merge_states", mutates_args=())
def _merge_states(v: torch.Tensor, s: torch.Tensor, natural: bool) -> tuple[torch.Tensor, torch.Tensor]:
    return new_merge_states(v, s, natural)


@_merge_states.register_fake
def _(v: torch.Tensor, s: torch.Tensor, natural: bool) -> State:
    positions, _, heads, dim = v.shape
    return v.new_empty(positions, heads, dim), s.new_empty(positions, heads)


@torch.library.custom_op("mergelaws::variable_length_merge_states", mutates_args=())
def _variable_length_merge_states(
    v: torch.Tensor, s: torch.Tensor, indptr: torch.Tensor, natural: bool
) -> tuple[torch.Tensor, torch.Tensor]:
    return new_merge_segments(v, s, indptr, natural)


@_variable_length_merge_states.register_fake
def _(v: torch.Tensor, s: torch.Tensor, indptr: torch.Tensor, natural: bool) -> State:
    segments, heads, dim = indptr.shape[0] - 1, v.shape[1], v.shape[2]
    return v.new_empty(segments, heads, dim), s.new_empty(segments, heads)
