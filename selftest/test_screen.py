"""The float64 screen decides as mpmath does: ratios agree within GUARD, classes agree everywhere."""

from __future__ import annotations

import itertools
import math

import numpy
import pytest

from oracles.bounds import Arithmetic, local
from oracles.exact import merge
from oracles.ratio import ratio
from oracles.screen import GUARD, Array, Ratios, screen, undecided
from selftest.rows import BASES, DTYPES, Rows, every_regime

OFFSETS = (
    0.0,
    0.3,
    1.0 - 2.0**-20,
    1.0,
    1.0 + 2.0**-20,
    1.5,
    -1.0,
    40.0,
)  # of a result from the exact value, in bounds
ARITHMETICS = ((2.0**-22, 2.0**-22, None), (0.0, 0.0, 1), (2.0**-20, 2.0**-19, 2))  # exp_error, log_error, exp_chain


def _settled(rows: Rows, v_out: Array, s_out: Array, arithmetic: Arithmetic) -> Ratios:
    """What mpmath says of the same rows."""
    ratios = Ratios(numpy.empty(v_out.shape), numpy.empty(s_out.shape))
    for row in range(len(s_out)):
        v, s = rows.v[row].tolist(), rows.s[row].tolist()
        right = merge(v, s, rows.base, dim=rows.v.shape[2])
        allowed = local(v, s, rows.dtype, arithmetic, dim=rows.v.shape[2])
        ratios.v[row], ratios.s[row] = ratio(right, allowed, v_out[row].tolist(), float(s_out[row]))
    return ratios


def _beside_the_bound(rows: Rows, arithmetic: Arithmetic, random: numpy.random.Generator) -> tuple[Array, Array]:
    """Results that are some multiple of their bound away from the exact value."""
    v_out, s_out = numpy.empty((rows.v.shape[0], rows.v.shape[2])), numpy.empty(len(rows.s))
    for row in range(len(s_out)):
        v, s = rows.v[row].tolist(), rows.s[row].tolist()
        right, allowed = merge(v, s, rows.base), local(v, s, rows.dtype, arithmetic)
        offsets = random.choice(OFFSETS, v_out.shape[1] + 1).tolist()
        v_out[row] = [
            float(star + far * bound) for star, far, bound in zip(right.v, offsets[1:], allowed.v, strict=True)
        ]
        s_out[row] = float(right.s + offsets[0] * allowed.s) if math.isfinite(right.s) else float(right.s)
    return v_out, s_out


def _furthest(screened: Array, settled: Array) -> float:
    """The largest difference of two arrays of ratios, as a fraction of max(1, ratio); inf if only one of two is inf."""
    with numpy.errstate(invalid="ignore"):
        off = numpy.abs(screened - settled) / numpy.maximum(1.0, settled)
    return float(numpy.where(screened == settled, 0.0, numpy.where(numpy.isnan(off), numpy.inf, off)).max(initial=0.0))


@pytest.mark.parametrize(("dtype", "base"), tuple(itertools.product(DTYPES, BASES)))
def test_ratios_agree_within_the_guard(dtype: str, base: int | str) -> None:
    """Rows of every regime, results around their bounds: exactly one bound away, a hair to either side, and far."""
    random = numpy.random.default_rng(7)
    arithmetics = itertools.cycle(Arithmetic(base, *errors) for errors in ARITHMETICS)
    for rows, arithmetic in zip(every_regime(dtype, base, rows=1, dim=2, seed=3), arithmetics, strict=False):
        v_out, s_out = _beside_the_bound(rows, arithmetic, random)
        screened = screen(rows.v, rows.s, v_out, s_out, dtype, arithmetic)
        settled = _settled(rows, v_out, s_out, arithmetic)
        assert max(_furthest(screened.v, settled.v), _furthest(screened.s, settled.s)) <= GUARD


@pytest.mark.parametrize(("dtype", "base"), tuple(itertools.product(DTYPES, BASES)))
def test_classes_agree(dtype: str, base: int | str) -> None:
    """NaN and infinities anywhere, in inputs and results: 0 where the class is right, inf where it is wrong."""
    random = numpy.random.default_rng(11)
    kinds = numpy.array([math.nan, math.inf, -math.inf, 0.0, 1.0, -2.5])
    odds = numpy.array([0.05, 0.05, 0.35, 0.15, 0.2, 0.2])
    seen = set()
    for count in (0, 1, 2, 5):
        s = random.choice(kinds, (60, count), p=odds)
        v = random.choice(kinds, (60, count, 2), p=[0.1, 0.1, 0.1, 0.2, 0.2, 0.3])
        v_out, s_out = random.choice(kinds, (60, 2)), random.choice(kinds, 60)
        rows = Rows(v, s, dtype, base)
        screened = screen(v, s, v_out, s_out, dtype, Arithmetic(base))
        settled = _settled(rows, v_out, s_out, Arithmetic(base))
        for got, want in ((screened.v, settled.v), (screened.s, settled.s)):
            assert numpy.array_equal(numpy.isinf(got), numpy.isinf(want))
            assert numpy.array_equal(got == 0.0, want == 0.0)
            seen |= {"wrong" if math.isinf(x) else "right" if x == 0.0 else "number" for x in want.ravel().tolist()}
    assert seen == {"wrong", "right", "number"}


@pytest.mark.parametrize("shape", [(0, 3, 2), (3, 0, 2), (3, 2, 0), (0, 0, 0)])
def test_sizes_of_zero(shape: tuple[int, int, int]) -> None:
    rows, count, dim = shape
    v, s = numpy.ones(shape), numpy.zeros((rows, count))
    lse = -math.inf if count == 0 else 1.0
    ratios = screen(v, s, numpy.full((rows, dim), float(count > 0)), numpy.full(rows, lse), "float32", Arithmetic())
    assert ratios.v.shape == (rows, dim)
    assert ratios.v.tolist() == numpy.zeros((rows, dim)).tolist()
    assert ratios.s.tolist() == [0.0] * rows
    assert undecided(ratios).tolist() == [False] * rows


def test_a_row_does_not_depend_on_its_neighbours(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same ratios whether rows are screened together or one by one, with poison beside them or not."""
    random = numpy.random.default_rng(13)
    v, s, noise = random.normal(size=(50, 7, 3)), random.normal(size=(50, 7)), random.normal(size=(50, 4))
    v[::7], s[::5, 2] = math.nan, -math.inf
    s[::11, 0] = math.nan
    results = v.mean(axis=1) + 1e-8 * noise[:, :3], s.max(axis=1) + noise[:, 3]
    together = screen(v, s, *results, "float32", Arithmetic())
    monkeypatch.setattr("oracles.screen._MOST_ELEMENTS", 1)
    alone = screen(v, s, *results, "float32", Arithmetic())
    assert numpy.array_equal(together.v, alone.v)
    assert numpy.array_equal(together.s, alone.s)


def test_inputs_are_left_as_they_are() -> None:
    v, s = numpy.array([[[math.nan], [1.0]]]), numpy.array([[-math.inf, 0.0]])
    out = numpy.array([[1.0]]), numpy.array([0.0])
    for array in (v, s, *out):
        array.flags.writeable = False
    ratios = screen(v, s, *out, "float32", Arithmetic())
    assert (ratios.v.tolist(), ratios.s.tolist()) == ([[0.0]], [0.0])
    assert numpy.isnan(v[0, 0, 0])


def test_many_states() -> None:
    """4096 states: the sums of float64 are still far finer than the bound."""
    random = numpy.random.default_rng(17)
    v, s = random.normal(size=(1, 4096, 2)), random.normal(0.0, 5.0, size=(1, 4096))
    rows = Rows(v, s, "float32", 2)
    v_out, s_out = _beside_the_bound(rows, Arithmetic(), random)
    screened, settled = screen(v, s, v_out, s_out, "float32", Arithmetic()), _settled(rows, v_out, s_out, Arithmetic())
    assert max(_furthest(screened.v, settled.v), _furthest(screened.s, settled.s)) <= GUARD


def test_rows_near_one_are_undecided() -> None:
    near = [1.0, 1.0 + GUARD, 1.0 - GUARD]
    far = [0.0, 1.0 - 2 * GUARD, 1.0 + 2 * GUARD, math.inf]
    for other in far:
        assert undecided(Ratios(numpy.full((3, 2), other), numpy.array(near))).tolist() == [True] * 3
        v = numpy.array([[other, x] for x in near])
        assert undecided(Ratios(v, numpy.full(3, other))).tolist() == [True] * 3
        assert undecided(Ratios(numpy.full((4, 2), other), numpy.array(far))).tolist() == [False] * 4


def test_an_unknown_base_is_refused() -> None:
    with pytest.raises(ValueError, match="must be 2 or 'e'"):
        screen(numpy.ones((1, 1, 1)), numpy.ones((1, 1)), numpy.ones((1, 1)), numpy.ones(1), "float32", Arithmetic(10))
