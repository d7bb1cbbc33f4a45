"""The bounds: right implementations stay below them and come near, what is worse than claimed does not, and errors compose."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy
import pytest
from hypothesis import given
from hypothesis import strategies as st

from oracles.bounds import LEAST, UNIT, Arithmetic, Bound, U, add, inherited, local, rounded
from oracles.exact import Exact, merge, natural_unit
from oracles.precision import context
from oracles.ratio import ratio
from oracles.screen import Array, screen, undecided
from selftest.float32_merges import RIGHT, Merge, in_float64, online
from selftest.rows import BASES, DTYPES, every_regime, stored

CTX = context()
GAPS = st.floats(0.0, 40.0)
ERRORS = st.one_of(st.just(0.0), st.floats(0.0, 2.0**-8), st.floats(0.0, 4.0))
SIDES = st.lists(st.floats(-1.0, 1.0), min_size=8, max_size=8)
PERTURBED = st.lists(st.tuples(st.floats(-9.0, 9.0), GAPS, ERRORS, ERRORS), min_size=1, max_size=4)


def _arithmetic(implementation: Merge, base: int | str) -> Arithmetic:
    return Arithmetic(base, exp_chain=None if implementation is online else 1)


def _state(v: float, s: float) -> Exact:
    return Exact((CTX.mpf(v),), CTX.mpf(s))


@pytest.mark.parametrize("implementation", RIGHT)
@pytest.mark.parametrize(("dtype", "base"), tuple(itertools.product(DTYPES, BASES)))
def test_right_implementations_stay_below_and_come_near(implementation: Merge, dtype: str, base: int | str) -> None:
    """9,600 rows of every regime: error <= bound throughout; the worst are near 1 where rounding to 16 bits dominates."""
    arithmetic = _arithmetic(implementation, base)
    worst_v, worst_s = 0.0, 0.0
    for rows in every_regime(dtype, base, rows=100, dim=2):
        with numpy.errstate(all="ignore"):
            v, s = implementation(rows.v, rows.s, base)
        ratios = screen(rows.v, rows.s, stored(v, dtype), s.astype(numpy.float64), dtype, arithmetic)
        assert not undecided(ratios).any()
        worst_v, worst_s = max(worst_v, ratios.v.max()), max(worst_s, ratios.s.max())
    assert worst_v < 1.0
    assert worst_s < 1.0
    near = {"float16": 0.9, "bfloat16": 0.9, "float32": 0.1 if implementation is in_float64 else 0.3}[dtype]
    assert worst_v >= near
    assert worst_s >= 0.9


@pytest.mark.parametrize(("dtype", "base"), tuple(itertools.product(DTYPES, BASES)))
def test_one_bound_away_passes_and_more_does_not(dtype: str, base: int | str) -> None:
    for rows in every_regime(dtype, base, rows=1, dim=1):
        v, s = rows.v[0].tolist(), rows.s[0].tolist()
        right, allowed = merge(v, s, base), local(v, s, dtype, Arithmetic(base))
        if right.s == CTX.ninf:
            continue
        for side, far in itertools.product((1, -1), (1, CTX.mpf("1.01"))):
            got_v, got_s = right.v[0] + side * far * allowed.v[0], right.s + side * far * allowed.s
            assert ratio(right, allowed, [got_v], got_s) == ([float(far)], float(far))


def _in_float64(v: Array, s: Array, exp_off: float, log_off: float, sum_off: float) -> tuple[Array, Array]:
    """A merge of two states whose parts are off by so much: the weights one up, one down; the logarithm; the numerator."""
    m = s.max(axis=1)
    w = numpy.exp2(s - m[:, None]) * (1.0 + exp_off * numpy.array([1.0, -1.0]))
    d = w.sum(axis=1)
    out = (w[:, :, None] * v).sum(axis=1) * (1.0 + sum_off) / d[:, None]
    log_d = numpy.log2(d)
    return out, m + log_d + log_off * (1.0 + log_d)


@pytest.mark.parametrize(
    ("offs", "second", "output"),
    [((2.0**-22, 0.0, 0.0), -1.0, "v"), ((0.0, 2.0**-22, 0.0), -1.0, "s"), ((0.0, 0.0, 3.0 * U), 1.0, "v")],
    ids=["exponential", "logarithm", "sums"],
)
def test_each_part_may_be_as_bad_as_claimed_and_not_four_times_worse(
    offs: tuple[float, float, float], second: float, output: str
) -> None:
    """The exponential, the logarithm and the sums have a share of their own: above 1/4 of the bound, below 1."""
    random = numpy.random.default_rng(19)
    s, v = random.uniform(-1.0, 1.0, (500, 2)), numpy.array([[1.0], [second]]) * random.uniform(0.5, 1.0, (500, 2, 1))

    def worst(factor: float) -> float:
        results = _in_float64(v, s, factor * offs[0], factor * offs[1], factor * offs[2])
        ratios = screen(v, s, *results, "float32", Arithmetic(2))
        return float((ratios.v if output == "v" else ratios.s).max())

    assert 0.25 < worst(1.0) < 1.0
    assert worst(4.0) > 1.0


def test_the_gap_is_paid_for_once_in_base_2_and_twice_in_base_e() -> None:
    """t_i grows by ln2 |x_i| u in base 2 and by 2 |y_i| u in base e: seen in s, where nothing but t_i depends on the gap."""
    plain = Arithmetic(2, 0.0, 0.0, 1)
    for base, per_unit in ((2, 1), ("e", 2)):
        depth = CTX.mpf(3)  # natural units
        s = [0.0, float(-depth / natural_unit(base))]
        exact_depth, unit = -CTX.mpf(s[1]) * natural_unit(base), natural_unit(base)
        share = CTX.exp(-exact_depth) / (1 + CTX.exp(-exact_depth))
        log_d = CTX.log1p(CTX.exp(-exact_depth)) / unit
        rho = share * CTX.expm1(per_unit * exact_depth * U) + 2 * U
        allowed = local(
            [[1.0], [2.0]], s, "float32", Arithmetic(base, plain.exp_error, plain.log_error, plain.exp_chain)
        )
        assert abs(allowed.s - (-CTX.log1p(-rho) / unit + U * log_d)) <= CTX.mpf(2) ** -150


def test_the_scale_by_log2_e_stays_within_two_units() -> None:
    """fl(fl(y) float32(log2 e)) is off by less than 1.95 u relative, for every mantissa and the worst rounding of y.

    y runs over all float32 in [1, 2), which stands for every binade; fl(y) is off by at most half a unit, u / y.
    """
    scale = numpy.float32(math.log2(math.e))
    y = numpy.arange(1 << 23, dtype=numpy.uint32)
    y = (y + numpy.float32(1.0).view(numpy.uint32)).view(numpy.float32)
    right = y.astype(numpy.float64) * math.log2(math.e)
    product = numpy.abs((y * scale).astype(numpy.float64) - right) / right
    worst = float((product + U / y).max()) / U
    assert 1.9 < worst < 1.95


def test_a_longer_chain_is_allowed_more() -> None:
    v, s = [[1.0], [-1.0], [2.0], [0.5]], [0.0, -1.0, -2.0, 0.5]
    by_chain = [local(v, s, "float32", Arithmetic(2, exp_chain=chain)) for chain in (1, 2, 3, 8)]
    for one, more in itertools.pairwise(by_chain):
        assert one.v[0] < more.v[0]
        assert one.s < more.s
    assert local(v, s, "float32", Arithmetic(2)) == by_chain[2]


def test_empty_states_change_no_bound() -> None:
    """They add zeros, which is exact: n counts the states that are not empty."""
    with_empties = local([[math.nan], [1.0], [7.0], [-1.0]], [-math.inf, 0.5, -math.inf, 0.0], "float16", Arithmetic())
    assert with_empties == local([[1.0], [-1.0]], [0.5, 0.0], "float16", Arithmetic())
    nothing = Bound((CTX.zero,) * 2, CTX.zero)
    assert local([], [], "float32", Arithmetic(), dim=2) == nothing
    assert local([[math.nan, 1.0]], [-math.inf], "float32", Arithmetic()) == nothing


def test_what_has_no_value_has_no_bound() -> None:
    """Only the class counts there, and the other components keep theirs."""
    poisoned = local([[1.0, 2.0]], [math.nan], "float32", Arithmetic())
    assert (poisoned.v, poisoned.s) == ((CTX.inf,) * 2, CTX.inf)
    broken = local([[1.0, math.inf]], [3.0], "float32", Arithmetic())
    assert CTX.isfinite(broken.v[0])
    assert CTX.isfinite(broken.s)
    assert broken.v[1] == CTX.inf


def test_constant_v_is_off_by_roundings_only() -> None:
    """Where all v_i agree, weight errors do not matter: 2 n + 4 roundings, however bad the exponential is."""
    for exp_error in (2.0**-22, 2.0**-6):
        allowed = local([[3.0]] * 5, [0.0, -1.0, -2.0, -3.0, 0.5], "float32", Arithmetic(2, exp_error)).v[0]
        assert 0 <= allowed - 14 * 3 * CTX.mpf(U) < CTX.mpf(2) ** -120


@pytest.mark.parametrize("deep", [-127.5, -149.5, -200.0, -3e38])
def test_a_flushed_weight_passes(deep: float) -> None:
    """v = 3e38 behind a weight below 2^-126: zero and the exact value are both within the bound, and ten times it is not."""
    v, s = [[0.0], [3e38]], [0.0, deep]
    right, allowed = merge(v, s), local(v, s, "float32", Arithmetic())
    assert ratio(right, allowed, [0.0], float(right.s))[0][0] <= 1.0
    assert ratio(right, allowed, [float(right.v[0])], float(right.s))[0][0] <= 1.0
    assert ratio(right, allowed, [10 * 2.0**-126 * 3e38], float(right.s))[0][0] > 1.0


def test_a_weight_that_cannot_be_flushed_counts() -> None:
    right, allowed = (
        merge([[0.0], [3e38]], [0.0, -124.5]),
        local([[0.0], [3e38]], [0.0, -124.5], "float32", Arithmetic()),
    )
    assert ratio(right, allowed, [0.0], float(right.s))[0][0] > 1000.0


@pytest.mark.parametrize("dtype", DTYPES)
def test_rounding_an_exact_state(dtype: str) -> None:
    """Every value is stored within u_T |v| + eta_T / 2, and some nearly that far off."""
    random = numpy.random.default_rng(23)
    v = random.choice([-1.0, 1.0], 4000) * 2.0 ** random.uniform(-30.0, 10.0, 4000)
    s = random.normal(0.0, 100.0, 4000)
    state_errors = []
    for value, lse, held, single in zip(v, s, _stored_once(v, dtype), s.astype(numpy.float32), strict=True):
        state = _state(float(value), float(lse))
        (v_ratio,), s_ratio = ratio(state, rounded(state, dtype), [float(held)], float(single))
        state_errors.append((v_ratio, s_ratio))
    for ratios in zip(*state_errors, strict=True):
        assert 0.95 < max(ratios) <= 1.0


def _stored_once(values: Array, dtype: str) -> Array:
    """Rounded to nearest even from float64, in one step: to a multiple of the unit in the last place."""
    spacing = numpy.maximum(2.0 * UNIT[dtype] * 2.0 ** numpy.floor(numpy.log2(numpy.abs(values))), LEAST[dtype])
    rounded_values: Array = numpy.round(values / spacing) * spacing
    return rounded_values


def test_empty_states_are_stored_without_error() -> None:
    assert rounded(Exact((CTX.zero,), CTX.ninf), "float16") == Bound((CTX.zero,), CTX.zero)


@pytest.mark.parametrize("base", BASES)
@given(inputs=PERTURBED, sides=SIDES)
def test_inherited_errors_cover_every_perturbation(
    base: int | str, inputs: list[tuple[float, float, float, float]], sides: list[float]
) -> None:
    """Inputs moved by up to their errors, in s and in v: the exact merge moves by no more than is inherited."""
    states = [_state(v, -gap) for v, gap, _, _ in inputs]
    errors = [Bound((CTX.mpf(b_v),), CTX.mpf(b_s)) for _, _, b_v, b_s in inputs]
    moved = [
        Exact((state.v[0] + error.v[0] * sides[2 * i],), state.s + error.s * sides[2 * i + 1])
        for i, (state, error) in enumerate(zip(states, errors, strict=True))
    ]
    right, off = _merge_of(states, base), _merge_of(moved, base)
    allowed, rounding = inherited(states, errors, base), CTX.mpf(2) ** -150
    assert abs(off.v[0] - right.v[0]) <= allowed.v[0] + rounding
    assert abs(off.s - right.s) <= allowed.s + rounding


@pytest.mark.parametrize("base", BASES)
@given(inputs=PERTURBED)
def test_inherited_errors_are_no_more_than_the_plain_formula(
    base: int | str, inputs: list[tuple[float, float, float, float]]
) -> None:
    """At most (1 + q) (sum p_i (1 + q_i) b_v,i + sum p_i q_i |v_i - v*|) and max b_s,i, which docs/numerics.md starts from."""
    states = [_state(v, -gap) for v, gap, _, _ in inputs]
    errors = [Bound((CTX.mpf(b_v),), CTX.mpf(b_s)) for _, _, b_v, b_s in inputs]
    right, allowed = _merge_of(states, base), inherited(states, errors, base)
    shares = [(natural_unit(base) * (state.s - right.s), error) for state, error in zip(states, errors, strict=True)]
    p = [CTX.exp(x) for x, _ in shares]
    q = [CTX.expm1(natural_unit(base) * error.s) for error in errors]
    passed = CTX.fsum(a * (1 + b) * error.v[0] for a, b, error in zip(p, q, errors, strict=True))
    pulled = CTX.fsum(a * b * abs(state.v[0] - right.v[0]) for a, b, state in zip(p, q, states, strict=True))
    just_above = 1 + CTX.mpf(2) ** -140
    assert allowed.v[0] <= (1 + max(q)) * (passed + pulled) * just_above + CTX.mpf(2) ** -140
    assert allowed.s <= max(error.s for error in errors) * just_above + CTX.mpf(2) ** -140


def test_inherited_errors_are_reached() -> None:
    """Two states moved apart by their errors come within a tenth of what is inherited: the bound is not loose."""
    states = [_state(1.0, 0.0), _state(-1.0, -1.0)]
    error = Bound((CTX.zero,), CTX.mpf(2) ** -12)
    right = _merge_of(states, 2)
    off = _merge_of([_state(1.0, 2.0**-12), _state(-1.0, -1.0 - 2.0**-12)], 2)
    assert abs(off.v[0] - right.v[0]) > 0.9 * inherited(states, [error, error], 2).v[0]
    both = _merge_of([_state(1.0, 2.0**-12), _state(-1.0, -1.0 + 2.0**-12)], 2)
    assert abs((both.s - right.s) / inherited(states, [error, error], 2).s - 1) < CTX.mpf(2) ** -120


def test_no_errors_give_no_error() -> None:
    states = [_state(1.0, 0.0), _state(-4.0, -1.0)]
    none = Bound((CTX.zero,), CTX.zero)
    assert inherited(states, [none, none], 2) == none
    some = Bound((CTX.mpf(3),), CTX.mpf(5))
    assert add(some, none) == some
    assert add(some, some) == Bound((CTX.mpf(6),), CTX.mpf(10))


def test_empty_states_pass_nothing_on() -> None:
    none, some = Bound((CTX.zero,), CTX.zero), Bound((CTX.inf,), CTX.inf)
    empty = Exact((CTX.zero,), CTX.ninf)
    assert inherited([empty, _state(2.0, 3.0)], [some, none], "e") == none
    assert inherited([empty, empty], [some, some], 2) == none


def test_huge_errors_of_s_leave_the_hull() -> None:
    """|s| = 3e38 stored in float32 is off by 2e31: any weights are possible, and any v between the states'."""
    states = [_state(1.0, 3e38), _state(5.0, 3e38)]
    allowed = inherited(states, [rounded(state, "float32") for state in states], 2)
    assert 2 <= allowed.v[0] < 2 + 7 * CTX.mpf(U)
    assert abs(allowed.s / (3e38 * CTX.mpf(U)) - 1) < CTX.mpf(2) ** -90
    light = [_state(1.0, 0.0), _state(5.0, -3e38)]
    allowed = inherited(light, [rounded(state, "float32") for state in light], 2)
    assert allowed.v[0] <= 2 * CTX.mpf(U)  # the second has no weight, whatever its error
    assert allowed.s <= CTX.mpf(2) ** -100


def _merge_of(states: list[Exact], base: int | str) -> Exact:
    return merge([state.v for state in states], [state.s for state in states], base)


@pytest.mark.parametrize(
    ("right", "got", "want"),
    [
        (_state(math.nan, 1.0), (math.nan, 1.0), (0.0, 0.0)),
        (_state(math.nan, 1.0), (math.inf, 1.0), (0.0, 0.0)),
        (_state(math.nan, 1.0), (0.0, 1.0), (math.inf, 0.0)),
        (_state(math.nan, math.nan), (math.nan, math.nan), (0.0, 0.0)),
        (_state(math.nan, math.nan), (math.inf, math.inf), (math.inf, math.inf)),
        (_state(math.nan, math.nan), (0.0, -math.inf), (math.inf, math.inf)),
        (_state(0.0, -math.inf), (0.0, -math.inf), (0.0, 0.0)),
        (_state(0.0, -math.inf), (-0.0, math.nan), (0.0, math.inf)),
        (_state(0.0, -math.inf), (1e-45, -3.4e38), (math.inf, math.inf)),
        (_state(2.0, 1.0), (math.nan, math.nan), (math.inf, math.inf)),
        (_state(2.0, 1.0), (math.inf, -math.inf), (math.inf, math.inf)),
        (_state(2.0, 1.0), (2.5, 1.0), (0.5, 0.0)),
    ],
)
def test_class_comes_before_error(right: Exact, got: tuple[float, float], want: tuple[float, float]) -> None:
    allowed = Bound((CTX.zero,), CTX.zero) if right.s == CTX.ninf else Bound((CTX.one,), CTX.one)
    v_ratios, s_ratio = ratio(right, allowed, [got[0]], got[1])
    assert (v_ratios[0], s_ratio) == want


def test_no_error_is_0_over_any_bound() -> None:
    right: Any = _state(2.0, 1.0)
    for bound in (CTX.zero, CTX.one, CTX.inf):
        assert ratio(right, Bound((bound,), bound), [2.0], 1.0) == ([0.0], 0.0)
    assert ratio(right, Bound((CTX.zero,), CTX.zero), [2.5], 1.5) == ([math.inf], math.inf)
