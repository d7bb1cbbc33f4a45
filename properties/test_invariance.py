"""Laws 9 and 10: what s is measured from does not matter, and v may be scaled."""

from dataclasses import dataclass
from typing import Any

import torch
from hypothesis import given
from hypothesis import strategies as st

from properties import subject
from properties.call import TWO_STATES
from properties.cases import Problem, States
from properties.checks import assert_same_bits, assert_same_v, assert_within_bound
from properties.laws import law
from properties.strategies import SEEDS, dtypes, head_dims, lse_bases, operations, problems


@dataclass(frozen=True)
class Shift:
    """States with s = steps * 2^exponent, and a shift of shift * 2^exponent: every sum is exact in float32."""

    operation: str = "merge_state"
    dtype: str = "float32"
    base: int | str = 2
    dim: int = 1
    steps: tuple[int, ...] = (0, 1)
    exponent: int = 0
    shift: int = 1
    v: str = "ordinary"
    seed: int = 0

    def problem(self, shift: int) -> Problem:
        """The states, shifted by shift * 2^exponent."""
        unit = 2.0**self.exponent
        s = tuple((step + shift) * unit for step in self.steps)
        count = 2 if self.operation in TWO_STATES else len(s)
        states = States(
            self.dtype, self.base, rows=2, heads=2, dim=self.dim, count=count, s=s, v=self.v, seed=self.seed
        )
        return Problem(self.operation, states)


def shifts() -> st.SearchStrategy[Shift]:
    """Shifts of any size up to 1e30, in units that suit them."""
    return st.builds(
        Shift,
        operation=operations(),
        dtype=dtypes(),
        base=lse_bases(),
        dim=head_dims(),
        steps=st.lists(st.integers(-(2**10), 2**10), min_size=2, max_size=6).map(tuple),
        exponent=st.integers(-12, 78),
        shift=st.integers(-(2**22), 2**22),
        v=st.sampled_from(("ordinary", "cancelling", "mixed")),
        seed=SEEDS,
    )


@law(9)
@given(case=shifts())
def test_a_shift_of_every_s_shifts_s_and_leaves_v(case: Shift) -> None:
    """merge(v, s + c) = (v, s + c): v bit for bit where that is claimed, s within the bound."""
    v, s = case.problem(0).tensors()
    _, shifted = case.problem(case.shift).tensors()
    before = case.problem(0).merged(v, s)
    after = case.problem(0).merged(v, shifted)
    assert_within_bound(case.operation, v, shifted, after, case.base)
    if subject.claims("shift"):
        inputs = {"v": v, "s": s, "shifted s": shifted}
        assert_same_v(case.operation, "a shift of every s changes no bit of v", after[0], before[0], inputs)


# Gaps stay small enough, and v large enough, that nothing on the way is subnormal before or after scaling.
MODERATE: dict[str, Any] = {
    "v_regimes": ("scalable",),
    "v_numbers": st.nothing(),
    "lse_regimes": ("near", "equal", "ulps apart", "offset"),
    "s_numbers": st.floats(-30, 30, width=32),
}


@law(10)
@given(problem=problems(**MODERATE), power=st.integers(-6, 10), sign=st.sampled_from([1.0, -1.0]))
def test_v_times_a_power_of_two_scales_the_result(problem: Problem, power: int, sign: float) -> None:
    """merge(2^k v, s) = (2^k v, s), bit for bit where that is claimed; -2^k as well."""
    v, s = problem.tensors()
    scale = sign * 2.0**power
    plain, scaled = problem.merged(v, s), problem.merged(v * scale, s)
    assert_within_bound(problem.operation, v * scale, s, scaled, problem.base)
    if subject.claims("scale"):
        inputs = {"v": v, "s": s}
        wanted = plain[0] * scale, plain[1]
        assert_same_bits(
            problem.operation, f"v times {scale:g} gives the result times {scale:g}", scaled, wanted, inputs
        )


@law(10)
@given(problem=problems(filled=True, v_regimes=("constant",), v_numbers=st.nothing()))
def test_a_constant_v_stays_that_constant(problem: Problem) -> None:
    """Where all v_i are one v, the result is v: within the bound, and bit for bit where the bound is under half an ulp."""
    v, s = problem.tensors()
    out = problem.merged(v, s)
    assert_within_bound(problem.operation, v, s, out, problem.base)
    constant = v[:, 0]
    same = (v == constant[:, None]).all(dim=1)
    if v.dtype == torch.float32 or v.shape[1] > 64:
        return
    # N + 3 roundings twice in float32 are far under half the distance of two 16-bit numbers, for N up to 64.
    normal = constant.abs() >= torch.finfo(v.dtype).tiny
    kept = torch.where(same & normal, constant, out[0])
    assert_same_v(problem.operation, "a constant v stays that constant", out[0], kept, {"v": v, "s": s})
