"""The exact merge: worked examples, published cases, special values, and independence of precision and of gmpy2."""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mpmath import mp

from oracles.exact import Exact, merge
from oracles.precision import PRECISION, context

ROOT = Path(__file__).resolve().parent.parent
CASES = json.loads((ROOT / "properties" / "public_cases.json").read_text())["numeric"]
BASES: tuple[int | str, ...] = (2, "e")
FLOAT32 = st.floats(width=32, allow_nan=False, allow_infinity=False)
LSES = st.one_of(st.just(-math.inf), st.floats(-300.0, 300.0, width=32), FLOAT32)
STATES = st.lists(st.tuples(st.tuples(FLOAT32, FLOAT32), LSES), min_size=1, max_size=6)


def _numbers(case: dict[str, Any]) -> tuple[list[list[float]], list[float]]:
    return [[float(v)] for v, _ in case["states"]], [float(s) for _, s in case["states"]]


def _same_digits(value: Any, printed: str) -> bool:
    """Whether `value` is what is printed, to all of its digits."""
    if not math.isfinite(float(printed)):
        return str(float(value)) == str(float(printed))
    digits = [c for c in printed.lower().split("e")[0] if c.isdigit()]
    exponent = math.floor(math.log10(abs(float(printed)))) if float(printed) else 0
    half_unit = context().mpf(10) ** (exponent - max(len("".join(digits).lstrip("0")), 1) + 1) / 2
    return bool(abs(value - context().mpf(printed)) <= half_unit)


@pytest.mark.parametrize("case", CASES, ids=[case["id"] for case in CASES])
def test_published_values(case: dict[str, Any]) -> None:
    v, s = _numbers(case)
    merged = merge(v, s, case["lse_base"])
    assert _same_digits(merged.v[0], str(case["right"]["v"]))
    assert _same_digits(merged.s, str(case["right"]["s"]))


def test_the_digits_comparison_sees_the_last_digit() -> None:
    assert _same_digits(context().mpf("0.12344"), "0.12344")
    assert not _same_digits(context().mpf("0.12344"), "0.12345")
    assert not _same_digits(context().mpf("3.0000000000000001224e38"), "3.0000000000000001214e+38")
    assert not _same_digits(context().mpf(1), "nan")


def test_equal_states_weigh_the_same() -> None:
    assert merge([[1.0, 0.0], [0.0, 1.0]], [10.0, 10.0], 2) == Exact((context().mpf(0.5),) * 2, context().mpf(11))


@pytest.mark.parametrize("base", BASES)
@given(states=STATES)
def test_more_precision_changes_nothing(base: int | str, states: list[tuple[tuple[float, float], float]]) -> None:
    """|v - v'| <= e (8 + 2 N) (A + |v*|) + 2 e N max |v_i| and |s - s'| <= e (2 |s*| + 4 + 4 N), e = 2^-160.

    A gap x is off by e x, its weight by x 2^-x e ln 2 < 0.4 e of the largest weight and by e of itself for the power.
    Then come N products and additions and a division, each off by e.
    """
    v, s = [list(v) for v, _ in states], [s for _, s in states]
    plain, fine = merge(v, s, base), merge(v, s, base, precision=400)
    ctx, unit, n = context(400), context(400).mpf(2) ** -PRECISION, len(s)
    if fine.s == ctx.ninf:
        assert plain == Exact((ctx.zero,) * 2, ctx.ninf)
        return
    mass = merge([[abs(x) for x in row] for row in v], s, base, precision=400)
    largest = max(abs(x) for row in v for x in row)
    for got, want, a in zip(plain.v, fine.v, mass.v, strict=True):
        assert abs(want - got) <= unit * ((8 + 2 * n) * (a + abs(want)) + 2 * n * largest)
    assert abs(fine.s - plain.s) <= unit * (2 * abs(fine.s) + 4 + 4 * n)


def test_widely_different_lses_are_finite_and_right() -> None:
    assert merge([[1.0], [2.0]], [-3e38, 3e38], 2) == Exact((context().mpf(2),), context().mpf(3e38))
    tiny = merge([[1.0], [3.0]], [1e-30, -1e-30], 2)
    assert 0 < 2 - tiny.v[0] < 1e-29
    assert abs(tiny.s - 1) < 1e-29


def test_a_tiny_s_has_all_its_digits() -> None:
    """log2(1 + 2^-2000) is 2^-2000 / ln 2 up to 2^-2000 of itself, though 1 + 2^-2000 is 1 at 160 bits."""
    ctx = context()
    s = merge([[1.0], [3.0]], [0.0, -2000.0], 2).s
    assert abs(ctx.ldexp(s, 2000) * ctx.ln2 - 1) <= ctx.mpf(2) ** (2 - PRECISION)


def test_empty_states_are_the_identity_and_their_v_is_not_looked_at() -> None:
    ctx = context()
    assert merge([], [], 2, dim=3) == Exact((ctx.zero,) * 3, ctx.ninf)
    assert merge([[math.nan], [7.0]], [-math.inf, -math.inf], "e") == Exact((ctx.zero,), ctx.ninf)
    assert merge([[math.nan], [7.0], [math.inf]], [-math.inf, -2.5, -math.inf], 2) == Exact(
        (ctx.mpf(7),), ctx.mpf(-2.5)
    )


@pytest.mark.parametrize("fault", [math.nan, math.inf])
def test_a_faulty_lse_makes_the_row_nan(fault: float) -> None:
    merged = merge([[1.0, 2.0], [3.0, 4.0]], [0.0, fault], 2)
    assert [math.isnan(x) for x in (*merged.v, merged.s)] == [True] * 3


@pytest.mark.parametrize("fault", [math.nan, math.inf, -math.inf])
def test_a_faulty_component_stays_in_its_column(fault: float) -> None:
    merged = merge([[1.0, fault], [3.0, 4.0]], [-1e30, 7.0], 2)
    assert merged.v[0] == 3
    assert math.isnan(merged.v[1])
    assert merged.s == 7


def test_what_cannot_be_answered_is_refused() -> None:
    with pytest.raises(ValueError, match="dim must say"):
        merge([], [], 2)
    with pytest.raises(ValueError, match="must be 2 or 'e'"):
        merge([[1.0]], [0.0], 10)


def test_nobody_elses_precision_matters() -> None:
    before = merge([[1.0], [2.0]], [0.1, 0.7], "e")
    with mp.workprec(20):
        assert merge([[1.0], [2.0]], [0.1, 0.7], "e") == before
    assert context() is not mp
    assert context().prec == PRECISION


def test_gmpy2_changes_no_bit() -> None:
    """The same digits with mpmath's Python integers as with gmpy2's."""
    pytest.importorskip("gmpy2", reason="without gmpy2 there is one backend, and nothing to compare")
    program = (
        "import mpmath.libmp; from oracles.exact import merge; from oracles.attention import attention\n"
        "print(mpmath.libmp.BACKEND)\n"
        "print(merge([[1.1], [2.7], [-3.3]], [0.1, -40.5, 3e38], 2), merge([[1.1], [-2.7]], [0.1, 0.3], 'e'))\n"
        "print(attention([1.0, 700.0, -0.3], [[1.0], [2.0], [3.5]], 2))\n"
    )
    printed = {}
    for backend, setting in (("gmpy", {}), ("python", {"MPMATH_NOGMPY": "1"})):
        run = subprocess.run(  # noqa: S603 - the program is the one above
            [sys.executable, "-c", program],
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": str(ROOT), **setting},
            capture_output=True,
            text=True,
            check=True,
        )
        used, *printed[backend] = run.stdout.splitlines()
        assert used == backend
    assert printed["gmpy"] == printed["python"]
