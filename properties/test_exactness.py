"""Law 1: every output row is within the bound of the exact merge of the very inputs that it was given."""

import math

from hypothesis import given
from hypothesis import strategies as st

from properties import call, subject
from properties.cases import Problem, Segments, States
from properties.checks import assert_within_bound
from properties.laws import law
from properties.public_cases import public_examples
from properties.strategies import faulty_lses, pairs, places, problems, segments, states


@law(1, "merge_state")
@given(case=pairs())
def test_two_states_merge_within_the_bound(case: States) -> None:
    """|v - v*| <= B_v and |s - s*| <= B_s."""
    v, s = case.tensors()
    assert_within_bound("merge_state", v, s, call.merge("merge_state", v, s, case.base), case.base)


@law(1, "merge_state_in_place")
@given(case=pairs())
def test_two_states_merge_in_place_within_the_bound(case: States) -> None:
    """|v - v*| <= B_v and |s - s*| <= B_s, written over the first state."""
    v, s = case.tensors()
    assert_within_bound("merge_state_in_place", v, s, call.merge("merge_state_in_place", v, s, case.base), case.base)


@law(1, "merge_states")
@given(case=states())
def test_many_states_merge_within_the_bound(case: States) -> None:
    """|v - v*| <= B_v(N) and |s - s*| <= B_s(N), for any N."""
    v, s = case.tensors()
    assert_within_bound("merge_states", v, s, call.merge_states(v, s, case.base), case.base)


@law(1, "variable_length_merge_states")
@given(case=segments())
def test_segments_merge_within_the_bound(case: Segments) -> None:
    """Row i is within the bound of the merge of the states indptr[i] .. indptr[i + 1] - 1; no other state is read."""
    v, s, indptr = case.tensors()
    out_v, out_s = call.variable_length_merge_states(v, s, indptr, case.states.base)
    ends = indptr.tolist()
    for row, (begin, end) in enumerate(zip(ends[:-1], ends[1:], strict=True)):
        out = out_v[row : row + 1], out_s[row : row + 1]
        operation = "variable_length_merge_states"
        assert_within_bound(operation, v[None, begin:end], s[None, begin:end], out, case.states.base)


@law(1)
@given(problem=problems(v_regimes=("ordinary",)), fault=faulty_lses(), where=places())
def test_an_lse_that_is_none_poisons_its_row_and_no_other(problem: Problem, fault: float, where: int) -> None:
    """s = NaN or +inf gives (NaN, NaN) in that row, and the other rows stay within the bound."""
    v, s = problem.tensors()
    s.view(-1)[where % s.numel()] = fault
    assert_within_bound(problem.operation, v, s, problem.merged(v, s), problem.base)


@law(1)
@given(
    problem=problems(filled=True, v_regimes=("ordinary", "mixed")),
    fault=st.sampled_from([math.nan, math.inf, -math.inf]),
    where=places(),
)
def test_a_v_that_is_not_finite_is_never_hidden(problem: Problem, fault: float, where: int) -> None:
    """NaN or inf in v of a state that is not empty reaches that component, whatever its weight, and no other."""
    v, s = problem.tensors()
    v.view(-1)[where % v.numel()] = fault
    assert_within_bound(problem.operation, v, s, problem.merged(v, s), problem.base)


@law(1)
@given(problem=problems())
@public_examples
def test_what_broke_other_kernels_comes_out_right(problem: Problem) -> None:
    """Every reported input, and any other, is within the bound, in both orders of its states."""
    if not subject.takes(problem):
        return
    v, s = problem.tensors()
    assert_within_bound(problem.operation, v, s, problem.merged(v, s), problem.base)
    back_v, back_s = v.flip(1), s.flip(1)
    assert_within_bound(problem.operation, back_v, back_s, problem.merged(back_v, back_s), problem.base)
