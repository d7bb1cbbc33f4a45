"""Law 15: any strided view gives the bits of its contiguous copy."""

from typing import Any, NamedTuple

import torch
from hypothesis import given
from hypothesis import strategies as st

from properties import call, subject
from properties.call import TWO_STATES
from properties.cases import Problem, Segments, States
from properties.checks import assert_same_bits, assert_within_bound
from properties.laws import law
from properties.layouts import LAYOUTS, laid_out
from properties.strategies import pairs, problems, segments

ANY = st.sampled_from(LAYOUTS)
SHAPES: dict[str, Any] = {"rows": 4, "heads": 4, "dims": (1, 2, 3, 4, 8, 16, 33, 128)}


class _Four(NamedTuple):
    """The tensors of two states."""

    v: torch.Tensor
    s: torch.Tensor
    v_other: torch.Tensor
    s_other: torch.Tensor


def _compare(operation: str, got: tuple[torch.Tensor, torch.Tensor], wanted: tuple[torch.Tensor, torch.Tensor],
             inputs: dict[str, torch.Tensor]) -> None:  # fmt: skip
    if subject.claims("layout"):
        assert_same_bits(operation, "strided views give the bits of contiguous copies", got, wanted, inputs)


@law(15, "merge_state")
@given(case=pairs(**SHAPES), v_a=ANY, s_a=ANY, v_b=ANY, s_b=ANY)
def test_strides_of_two_states_do_not_matter(case: States, v_a: str, s_a: str, v_b: str, s_b: str) -> None:
    """merge_state of four views of four layouts has the bits of merge_state of their contiguous copies."""
    v, s = case.tensors()
    views = _Four(laid_out(v[:, 0], v_a), laid_out(s[:, 0], s_a), laid_out(v[:, 1], v_b), laid_out(s[:, 1], s_b))
    copies = _Four(*(view.contiguous() for view in views))
    out = call.merge_state(*views, base=case.base)
    stacked = torch.stack([copies[0], copies[2]], dim=1), torch.stack([copies[1], copies[3]], dim=1)
    assert_within_bound("merge_state", *stacked, out, case.base)
    inputs = dict(zip(("v_a", "s_a", "v_b", "s_b"), views, strict=True))
    _compare("merge_state", out, call.merge_state(*copies, base=case.base), inputs)


@law(15, "merge_state_in_place")
@given(case=pairs(**SHAPES), v_a=ANY, s_a=ANY, v_b=ANY, s_b=ANY, mask=st.booleans())
def test_strides_do_not_matter_in_place(case: States, v_a: str, s_a: str, v_b: str, s_b: str, mask: bool) -> None:
    """The same for merge_state_in_place; what is written to is never expanded, for it could not hold the result."""
    v, s = case.tensors()
    v_a, s_a = (layout if "expanded" not in layout else "padded" for layout in (v_a, s_a))
    views = _Four(laid_out(v[:, 0], v_a), laid_out(s[:, 0], s_a), laid_out(v[:, 1], v_b), laid_out(s[:, 1], s_b))
    copies = _Four(*(view.contiguous() for view in views))
    every_other = torch.arange(case.rows * 2, device=v.device).remainder(4) < 2 if mask else None
    stepped = None if every_other is None else every_other[::2]
    out = call.merge_state_in_place(*views, stepped, case.base)
    inputs = dict(zip(("v", "s", "v_other", "s_other"), views, strict=True))
    plain = None if stepped is None else stepped.contiguous()
    _compare("merge_state_in_place", out, call.merge_state_in_place(*copies, plain, case.base), inputs)


@law(15, "merge_states")
@given(problem=problems(among=("merge_states",), **SHAPES), v_layout=ANY, s_layout=ANY)
def test_strides_of_many_states_do_not_matter(problem: Problem, v_layout: str, s_layout: str) -> None:
    """merge_states of views has the bits of merge_states of their contiguous copies."""
    v, s = problem.tensors()
    views = laid_out(v, v_layout), laid_out(s, s_layout)
    copies = views[0].contiguous(), views[1].contiguous()
    out = call.merge_states(*views, base=problem.base)
    assert_within_bound("merge_states", *copies, out, problem.base)
    _compare("merge_states", out, call.merge_states(*copies, base=problem.base), {"v": views[0], "s": views[1]})


@law(15, "variable_length_merge_states")
@given(case=segments(heads=3, dims=(1, 3, 8)), v_layout=ANY, s_layout=ANY)
def test_strides_of_segments_do_not_matter(case: Segments, v_layout: str, s_layout: str) -> None:
    """variable_length_merge_states of views, of indptr too, has the bits of its contiguous copies."""
    v, s, indptr = case.tensors()
    if v.shape[0] == 0:
        return
    views = laid_out(v, v_layout), laid_out(s, s_layout)
    copies = views[0].contiguous(), views[1].contiguous()
    stepped = indptr.repeat_interleave(2)[::2]
    out = call.variable_length_merge_states(*views, stepped, case.states.base)
    wanted = call.variable_length_merge_states(*copies, indptr, case.states.base)
    _compare("variable_length_merge_states", out, wanted, {"v": views[0], "s": views[1]})


@law(15, "merge_state")
@given(case=pairs(rows=4, heads=4, dims=(2, 8), v_regimes=("ordinary",)))
def test_a_square_s_is_not_read_transposed(case: States) -> None:
    """With S = H and s that differ in every place, row (i, h) is merged with s[i, h]."""
    size = max(case.rows, case.heads)
    square = States(case.dtype, case.base, size, size, case.dim, 2, "near", "ordinary", case.garbage, case.seed)
    v, s = square.tensors()
    for operation in TWO_STATES:
        if subject.offers(operation):
            assert_within_bound(operation, v, s, call.merge(operation, v, s, case.base), case.base)
