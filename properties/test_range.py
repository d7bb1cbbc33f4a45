"""Laws 11 and 12: a merge is an average, and every state pulls on it."""

from typing import Any

import torch
from hypothesis import assume, given
from hypothesis import strategies as st

from oracles import bounds
from oracles.precision import context
from oracles.reading import exact_values
from properties import record
from properties.broken import Evidence, LawBroken, spelled
from properties.cases import Problem
from properties.checks import arithmetic, assert_within_bound, name_of
from properties.laws import law
from properties.strategies import problems

SMALL: dict[str, Any] = {"rows": 2, "heads": 1, "dims": (1, 2, 3)}


@law(11)
@given(problem=problems(filled=True, **SMALL))
def test_the_result_lies_among_the_states(problem: Problem) -> None:
    """min v_i <= v <= max v_i and max s_i <= s <= max s_i + log N, each plus the bound."""
    v, s = problem.tensors()
    out_v, out_s = problem.merged(v, s)
    ctx = context()
    for row in range(v.shape[0]):
        states_v, states_s = exact_values(v)[row, :, 0].tolist(), exact_values(s)[row, :, 0].tolist()
        if not states_s:
            continue
        allowed = bounds.local(states_v, states_s, name_of(v.dtype), arithmetic(problem.base))
        most = max(states_s) + (ctx.log(len(states_s)) if problem.base == "e" else ctx.log(len(states_s), 2))
        inputs = {"v": v[row, :, 0], "s": s[row, :, 0]}
        _between(problem, "s", out_s[row, 0], max(states_s), most, allowed.s, inputs)
        for column, bound in enumerate(allowed.v):
            among = [state[column] for state in states_v]
            _between(problem, "v", out_v[row, 0, column], min(among), max(among), bound, inputs)


def _between(
    problem: Problem,
    output: str,
    got: torch.Tensor,
    least: object,
    most: object,
    bound: object,
    inputs: dict[str, torch.Tensor],
) -> None:
    ctx = context()
    number = ctx.mpf(float(got))
    beyond = max(ctx.mpf(least) - number, number - ctx.mpf(most))
    if ctx.isfinite(number) and beyond <= bound:
        record.ratio(problem.operation, name_of(inputs["v"].dtype), output, max(0.0, float(beyond / bound)))
        return
    expected = f"{output} from {float(ctx.mpf(least)):.9g} to {float(ctx.mpf(most)):.9g}"
    lines = [
        f"{problem.operation}: {output} leaves the range of the states by more than its bound",
        *(f"  input     {name} = {spelled(tensor)}" for name, tensor in inputs.items()),
        f"  expected  {expected}",
        f"  actual    {output} = {spelled(got)}",
    ]
    evidence = Evidence(problem.operation, "in range", inputs, problem.base, expected, spelled(got))
    raise LawBroken("\n".join(lines), evidence)


@law(12)
@given(
    problem=problems(filled=True, lse_regimes=("near", "wide", "dominant"), v_regimes=("ordinary",), **SMALL),
    which=st.integers(0, 63),
    rise=st.sampled_from([1.0, 0.25, 8.0, 40.0]),
)
def test_raising_one_s_moves_v_towards_its_v(problem: Problem, which: int, rise: float) -> None:
    """(v' - v)(v_k - v) >= 0 up to the bounds, where s'_k = s_k + rise."""
    v, s = problem.tensors()
    raised_k = which % v.shape[1]
    raised = s.clone()
    raised[:, raised_k] += rise
    before, after = problem.merged(v, s), problem.merged(v, raised)
    for row in range(v.shape[0]):
        states_v = exact_values(v)[row, :, 0].tolist()
        first, second = (
            bounds.local(states_v, exact_values(lses)[row, :, 0].tolist(), name_of(v.dtype), arithmetic(problem.base))
            for lses in (s, raised)
        )
        for column in range(v.shape[-1]):
            old, new = float(before[0][row, 0, column]), float(after[0][row, 0, column])
            pull = states_v[raised_k][column] - old
            away = old - new if pull > 0 else new - old
            if away <= float(first.v[column] + second.v[column]):
                continue
            inputs = {"v": v[row, :, 0, column], "s": s[row, :, 0], "raised s": raised[row, :, 0]}
            lines = [
                f"{problem.operation}: raising s of state {raised_k} moved v away from that state's v",
                *(f"  input     {name} = {spelled(tensor)}" for name, tensor in inputs.items()),
                f"  actual    v = {old:.9g}, then {new:.9g}",
            ]
            evidence = Evidence(problem.operation, "towards the heavier state", inputs, problem.base)
            raise LawBroken("\n".join(lines), evidence)


@law(12)
@given(
    problem=problems(filled=True, lse_regimes=("near", "equal", "edges")),
    which=st.one_of(st.sampled_from([-1, 0]), st.integers(0, 63)),
)
def test_nearly_all_weight_on_a_state_gives_that_state(problem: Problem, which: int) -> None:
    """With s_k far above all others the merge is (v_k, s_k) within the bound, for any k: every state is read."""
    v, s = problem.tensors()
    k = which % v.shape[1]
    top = s.amax(dim=1) + 300.0
    assume(bool((top > s.amax(dim=1) + 299.0).all()))
    heavy = s.clone()
    heavy[:, k] = top
    out = problem.merged(v, heavy)
    assert_within_bound(problem.operation, v, heavy, out, problem.base)
