"""Law 13: a row depends on its own inputs alone, in any batch, to the last bit where "batch" is claimed."""

import math
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from mergelaws.implementation import OPERATIONS
from properties import call, subject
from properties.cases import Problem, Segments, States
from properties.checks import assert_same_bits, assert_within_bound
from properties.laws import law
from properties.strategies import counts, problems, segments

# Many rows and many states: a sum whose order depends on the batch shows only where there is an order to change.
ROWS: dict[str, Any] = {
    "rows": 8,
    "heads": 5,
    "dims": (1, 2, 3, 8, 16, 33),
    "count": st.one_of(counts(least=17), counts()),
}

State = tuple[torch.Tensor, torch.Tensor]


def _assert_kept(problem: Problem, claim: str, v: torch.Tensor, s: torch.Tensor, out: State, alone: State) -> None:
    """`out`, of the states v and s, has the bits of `alone`, or is within the bound where no bits are claimed."""
    assert_within_bound(problem.operation, v, s, out, problem.base)
    if subject.claims("batch"):
        assert_same_bits(problem.operation, claim, out, alone, {"v": v, "s": s})


@law(13)
@given(problem=problems(**ROWS), row=st.integers(0, 4), head=st.integers(0, 4))
def test_a_row_alone_has_the_bits_it_has_in_a_batch(problem: Problem, row: int, head: int) -> None:
    """merge(v, s)[i] = merge(v[i], s[i]), for a position and a head."""
    v, s = problem.tensors()
    i, h = row % v.shape[0], head % v.shape[2]
    batch_v, batch_s = problem.merged(v, s)
    mine_v, mine_s = v[i : i + 1, :, h : h + 1], s[i : i + 1, :, h : h + 1]
    alone = problem.merged(mine_v, mine_s)
    out = batch_v[i : i + 1, h : h + 1], batch_s[i : i + 1, h : h + 1]
    _assert_kept(problem, "a row has the same bits alone and in a batch", mine_v, mine_s, out, alone)


@law(13)
@given(problem=problems(**ROWS), seed=st.integers(0, 2**16))
def test_rows_and_heads_may_be_permuted_and_repeated(problem: Problem, seed: int) -> None:
    """merge(v, s)[p] = merge(v[p], s[p]) for any choice p of positions and of heads, with repetition."""
    v, s = problem.tensors()
    generator = torch.Generator().manual_seed(seed)
    rows = torch.randint(0, v.shape[0], (v.shape[0] + 1,), generator=generator).to(v.device)
    heads = torch.randint(0, v.shape[2], (v.shape[2],), generator=generator).to(v.device)
    out_v, out_s = problem.merged(v, s)
    chosen_v, chosen_s = v[rows][:, :, heads].contiguous(), s[rows][:, :, heads].contiguous()
    chosen = problem.merged(chosen_v, chosen_s)
    wanted = out_v[rows][:, heads].contiguous(), out_s[rows][:, heads].contiguous()
    _assert_kept(problem, "chosen rows and heads keep their bits", chosen_v, chosen_s, chosen, wanted)


@law(13)
@given(
    problem=problems(**ROWS),
    row=st.integers(0, 4),
    head=st.integers(0, 4),
    poison=st.sampled_from([math.nan, math.inf]),
)
def test_poison_in_other_rows_stays_there(problem: Problem, row: int, head: int, poison: float) -> None:
    """With v of all other rows and heads NaN or inf, and their s NaN where that has a meaning, this row keeps its bits."""
    v, s = problem.tensors()
    i, h = row % v.shape[0], head % v.shape[2]
    others = torch.ones(v.shape[0], v.shape[2], dtype=torch.bool)
    others[i, h] = False
    poisoned_v, poisoned_s = v.clone(), s.clone()
    poisoned_v.movedim(1, 2)[others] = poison
    if subject.current().nan_lse != "any":
        poisoned_s.movedim(1, 2)[others] = math.nan
    clean_v, clean_s = problem.merged(v, s)
    dirty_v, dirty_s = problem.merged(poisoned_v, poisoned_s)
    mine = dirty_v[i : i + 1, h : h + 1], dirty_s[i : i + 1, h : h + 1]
    wanted = clean_v[i : i + 1, h : h + 1], clean_s[i : i + 1, h : h + 1]
    claim = "a row keeps its bits whatever the others hold"
    _assert_kept(problem, claim, v[i : i + 1, :, h : h + 1], s[i : i + 1, :, h : h + 1], mine, wanted)


@law(13, "variable_length_merge_states")
@given(case=segments(heads=3, dims=(1, 2, 3, 8)))
def test_a_segment_has_the_bits_of_its_states_alone(case: Segments) -> None:
    """Segment i of a list has the bits of a list of that segment alone."""
    v, s, indptr = case.tensors()
    out_v, out_s = call.variable_length_merge_states(v, s, indptr, case.states.base)
    ends = indptr.tolist()
    for row, (begin, end) in enumerate(zip(ends[:-1], ends[1:], strict=True)):
        one_v, one_s = v[begin:end].contiguous(), s[begin:end].contiguous()
        alone = call.merge("variable_length_merge_states", one_v[None], one_s[None], case.states.base)
        problem = Problem("variable_length_merge_states", case.states)
        out = out_v[row : row + 1], out_s[row : row + 1]
        _assert_kept(problem, "a segment has the same bits alone and in a list", one_v[None], one_s[None], out, alone)


@law(13)
@pytest.mark.parametrize("operation", OPERATIONS)
@pytest.mark.parametrize("count", (2, 17, 40))
def test_the_size_of_the_batch_changes_no_bit(operation: str, count: int) -> None:
    """The first rows of 2,100 have the bits that they have in a batch of 27, and of 3: no sum is cut by the batch."""
    claims = subject.current()
    if not subject.offers(operation) or (operation in call.TWO_STATES and count != 2):
        pytest.skip(f"{claims.name} does not merge {count} states by {operation}")
    if (claims.max_states or count) < count or (claims.max_heads or 3) < 3:
        pytest.skip(f"{claims.name} does not claim N = {count} with H = 3")
    dim = 8 if claims.head_dims is None else min(claims.head_dims)
    case = States(claims.dtypes[0], subject.bases()[0], 700, 3, dim, count, "near", "ordinary", seed=count)
    problem = Problem(operation, case)
    v, s = problem.tensors()
    whole_v, whole_s = problem.merged(v, s)
    for rows in (9, 1):
        few_v, few_s = v[:rows].contiguous(), s[:rows].contiguous()
        few = problem.merged(few_v, few_s)
        claim = "the size of the batch changes no bit"
        _assert_kept(problem, claim, few_v, few_s, few, (whole_v[:rows], whole_s[:rows]))
