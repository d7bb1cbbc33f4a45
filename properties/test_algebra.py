"""Laws 3, 4, 6 and 7: the states of disjoint key sets form a commutative monoid, and merging counts every state once."""

import torch
from hypothesis import example, given
from hypothesis import strategies as st

from oracles import exact
from properties import call, subject, trees
from properties.call import MANY_STATES, TWO_STATES
from properties.cases import Problem, States
from properties.checks import assert_same_bits, assert_same_v, assert_within_bound
from properties.laws import law
from properties.strategies import counts, pairs, problems, states

PICKS = st.lists(st.integers(0, 9), min_size=1, max_size=10).map(tuple)


@law(3, "merge_state")
@given(case=pairs())
def test_merging_is_commutative(case: States) -> None:
    """a + b = b + a, bit for bit where that is claimed."""
    v, s = case.tensors()
    one_way = call.merge("merge_state", v, s, case.base)
    other_way = call.merge("merge_state", v.flip(1), s.flip(1), case.base)
    assert_within_bound("merge_state", v, s, other_way, case.base)
    if subject.claims("commutative"):
        assert_same_bits("merge_state", "a + b has the bits of b + a", other_way, one_way, {"v": v, "s": s})


@law(4, "merge_state")
@given(case=states(count=st.just(3), rows=1, heads=1, dims=(1, 2, 3)))
def test_merging_is_associative(case: States) -> None:
    """(a + b) + c = a + (b + c) = the exact merge of all three, each within its composed bound."""
    v, s = case.tensors()
    a, b, c = (trees.given(v[:, i], s[:, i], case.base) for i in range(3))
    right = exact.merge([a.exact.v, b.exact.v, c.exact.v], [a.exact.s, b.exact.s, c.exact.s], case.base)
    inputs = {"v": v[..., 0], "s": s}
    left_first = trees.merged(trees.merged(a, b, case.base), c, case.base)
    right_first = trees.merged(a, trees.merged(b, c, case.base), case.base)
    trees.assert_tracked("merge_state", left_first, right, inputs, case.base)
    trees.assert_tracked("merge_state", right_first, right, inputs, case.base)


@law(6, any_of=TWO_STATES)
@given(problem=problems(filled=True, among=TWO_STATES, v_regimes=("ordinary", "sinks", "cancelling", "limits")))
def test_a_state_merged_with_itself_counts_twice(problem: Problem) -> None:
    """x + x = (v, s + 1) in base 2, (v, s + ln 2) in base e: bit for bit where that is claimed, s rounded once."""
    v, s = (tensor[:, :1].expand(-1, 2, *tensor.shape[2:]) for tensor in problem.tensors())
    out = problem.merged(v, s)
    assert_within_bound(problem.operation, v, s, out, problem.base)
    if subject.claims("doubling"):
        inputs = {"v": v, "s": s}
        assert_same_v(problem.operation, "x + x has the v of x", out[0], v[:, 0], inputs)
        if problem.base == 2:
            wanted = v[:, 0], s[:, 0] + 1.0
            assert_same_bits(problem.operation, "x + x is (v, s + 1)", out, wanted, inputs)


@law(6, any_of=MANY_STATES)
@given(problem=problems(filled=True, among=MANY_STATES, count=counts()))
def test_n_copies_count_n_times(problem: Problem) -> None:
    """x + ... + x, n times, is (v, s + log n) within the bound."""
    v, s = problem.tensors()
    count = v.shape[1]
    v, s = (tensor[:, :1].expand(-1, count, *tensor.shape[2:]) for tensor in (v, s))
    assert_within_bound(problem.operation, v, s, problem.merged(v, s), problem.base)


@law(7, "merge_state", "merge_states")
@given(case=states(count=counts(least=2, most=8), rows=1, heads=1, dims=(1, 2, 3)), picks=PICKS)
def test_n_states_equal_any_tree_of_two(case: States, picks: tuple[int, ...]) -> None:
    """merge_states and every fold and tree of merge_state give the exact merge, each within its composed bound."""
    v, s = case.tensors()
    leaves = [trees.given(v[:, i], s[:, i], case.base) for i in range(case.count)]
    at_once = trees.all_merged(leaves, case.base)
    inputs = {"v": v[..., 0], "s": s}
    trees.assert_tracked("merge_states", at_once, at_once.exact, inputs, case.base)
    trees.assert_tracked("merge_state", trees.tree(leaves, picks, case.base), at_once.exact, inputs, case.base)


@law(7)
@given(problem=problems(count=counts()), seed=st.integers(0, 2**16))
def test_the_order_of_the_states_does_not_matter(problem: Problem, seed: int) -> None:
    """Any permutation of the N states gives the exact merge of the N states, within the bound."""
    v, s = problem.tensors()
    v, s = v[:, :2] if problem.operation in TWO_STATES else v, s[:, :2] if problem.operation in TWO_STATES else s
    order = torch.randperm(v.shape[1], generator=torch.Generator().manual_seed(seed)).to(v.device)
    out = problem.merged(v[:, order], s[:, order])
    assert_within_bound(problem.operation, v, s, out, problem.base)


@law(7, any_of=MANY_STATES)
@given(problem=problems(among=MANY_STATES, count=st.just(1), filled=True))
@example(problem=Problem("merge_states", States(dim=8, count=1, v="small"))).via("tl.full compiled -0.0 to 0.0, H200")
def test_one_state_is_copied(problem: Problem) -> None:
    """N = 1 gives that state, bit for bit where "identity" is claimed."""
    if not subject.takes(problem):
        return
    v, s = problem.tensors()
    out = problem.merged(v, s)
    assert_within_bound(problem.operation, v, s, out, problem.base)
    if subject.claims("identity"):
        inputs = {"v": v, "s": s}
        assert_same_bits(problem.operation, "one state is copied", out, (v[:, 0], s[:, 0]), inputs)
