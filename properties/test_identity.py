"""Law 5: the empty state is the identity of merging, whatever its v holds."""

import torch
from hypothesis import given
from hypothesis import strategies as st

from properties import subject
from properties.call import MANY_STATES, TWO_STATES
from properties.cases import Problem
from properties.checks import assert_same_bits, assert_within_bound
from properties.laws import law
from properties.strategies import counts, problems


def _settled(v: torch.Tensor, s: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """The state (v, s) as a merge returns it: an empty one as (0, -inf)."""
    return torch.where(torch.isneginf(s)[..., None], torch.zeros_like(v), v), s


@law(5, any_of=TWO_STATES)
@given(problem=problems(among=TWO_STATES), side=st.integers(0, 1))
def test_merging_with_empty_changes_nothing(problem: Problem, side: int) -> None:
    """x + (0, -inf) = (0, -inf) + x = x, bit for bit where that is claimed."""
    v, s = problem.tensors()
    emptied = s.clone()
    emptied[:, side] = -torch.inf
    junk = v.clone() if problem.states.garbage != "zero" else torch.zeros_like(v)
    v_in = torch.stack([junk[:, 0], v[:, 1]] if side == 0 else [v[:, 0], junk[:, 1]], dim=1)
    out = problem.merged(v_in, emptied)
    assert_within_bound(problem.operation, v_in, emptied, out, problem.base)
    if subject.claims("identity"):
        wanted = _settled(v[:, 1 - side], s[:, 1 - side])
        inputs = {"v": v_in, "s": emptied}
        assert_same_bits(problem.operation, "merging with empty changes no bit", out, wanted, inputs)


@law(5, any_of=TWO_STATES)
@given(problem=problems(among=TWO_STATES), times=st.integers(2, 4))
def test_merging_with_empty_again_and_again_changes_nothing(problem: Problem, times: int) -> None:
    """x + empty + ... + empty = x."""
    v, s = problem.tensors()
    empty_v, empty_s = torch.zeros_like(v[:, 0]), torch.full_like(s[:, 0], -torch.inf)
    state = v[:, 0], s[:, 0]
    for turn in range(times):
        sides = [(empty_v, empty_s), state] if turn % 2 else [state, (empty_v, empty_s)]
        state = problem.merged(torch.stack([x[0] for x in sides], 1), torch.stack([x[1] for x in sides], 1))
    inputs = {"v": v[:, :1], "s": s[:, :1]}
    if subject.claims("identity"):
        wanted = _settled(v[:, 0], s[:, 0])
        assert_same_bits(problem.operation, "empties change no bit, however many", state, wanted, inputs)
    else:
        assert_within_bound(problem.operation, v[:, :1], s[:, :1], state, problem.base)


@law(5, any_of=MANY_STATES)
@given(problem=problems(among=MANY_STATES, count=counts()), place=st.integers(0, 63))
def test_one_state_among_empties_is_copied(problem: Problem, place: int) -> None:
    """N states of which one is not empty give that state, whatever its position and whatever the others' v holds."""
    v, s = problem.tensors()
    kept = place % v.shape[1]
    alone = torch.full_like(s, -torch.inf)
    alone[:, kept] = s[:, kept]
    out = problem.merged(v, alone)
    assert_within_bound(problem.operation, v, alone, out, problem.base)
    if subject.claims("identity"):
        wanted = _settled(v[:, kept], s[:, kept])
        inputs = {"v": v, "s": alone}
        assert_same_bits(problem.operation, "one state among empties is copied", out, wanted, inputs)


@law(5, any_of=MANY_STATES)
@given(problem=problems(among=MANY_STATES, count=counts(most=17)), holes=st.lists(st.integers(0, 17), max_size=5))
def test_empties_among_states_change_nothing(problem: Problem, holes: list[int]) -> None:
    """Empty states put in anywhere leave the merge within the bound of the others', and its bits if "padding" is claimed."""
    v, s = problem.tensors()
    out = problem.merged(v, s)
    padded_v, padded_s = v, s
    for hole in holes:
        at = hole % (padded_s.shape[1] + 1)
        padded_v = torch.cat([padded_v[:, :at], torch.ones_like(v[:, :1]), padded_v[:, at:]], dim=1)
        padded_s = torch.cat([padded_s[:, :at], torch.full_like(s[:, :1], -torch.inf), padded_s[:, at:]], dim=1)
    limit = subject.current().max_states
    if limit is not None and padded_s.shape[1] > limit:
        return
    padded = problem.merged(padded_v, padded_s)
    assert_within_bound(problem.operation, padded_v, padded_s, padded, problem.base)
    if subject.claims("padding"):
        inputs = {"v": padded_v, "s": padded_s}
        assert_same_bits(problem.operation, "empties among states change no bit", padded, out, inputs)
