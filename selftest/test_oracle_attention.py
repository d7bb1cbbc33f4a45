"""The two oracles against each other: attention over a union of keys equals the merge of its parts."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from oracles.attention import attention
from oracles.exact import Exact, merge
from oracles.precision import PRECISION, context

BASES: tuple[int | str, ...] = (2, "e")
SCORES = st.one_of(
    st.floats(-30.0, 30.0, width=32), st.floats(-1000.0, 1000.0, width=32), st.just(-math.inf), st.just(0.0)
)
VALUES = st.tuples(st.floats(-1e6, 1e6, width=32), st.floats(-1.0, 1.0, width=32))


@dataclass(frozen=True)
class Key:
    """A key's score and value, and the part of the partition that it falls into."""

    score: float
    value: tuple[float, float]
    part: int


KEYS = st.lists(st.builds(Key, score=SCORES, value=VALUES, part=st.integers(0, 4)), max_size=12)


def _over(keys: Sequence[Key], base: int | str) -> Exact:
    return attention([key.score for key in keys], [key.value for key in keys], base, dim=2)


def _merged(states: Sequence[Exact], base: int | str) -> Exact:
    return merge([state.v for state in states], [state.s for state in states], base, dim=2)


def _assert_equal(got: Exact, want: Exact, keys: Sequence[Key], merges: int) -> None:
    """Equal up to what the making of the parts and `merges` merges at PRECISION bits may add.

    With e = 2^-PRECISION, k keys and S >= |s|, each making and each merge is off by at most e (S + 4 k + 8) in s, for its
    rounding and its sums, and by four times as much times V, the largest |v|, in v. An error b of every s moves v by at
    most 4 b V more, and b grows with every merge: (merges + 1)^2 steps in all.
    """
    ctx = context()
    if want.s == ctx.ninf:
        assert got == want
        return
    unit, count = ctx.mpf(2) ** -PRECISION, len(keys)
    scores = [abs(key.score) for key in keys if key.score != -math.inf]
    s = (max(scores) + math.log(count)) / math.log(2.0) + 1
    largest = max(abs(x) for key in keys for x in key.value)
    made = 4 * count + 8 + s
    assert abs(got.s - want.s) <= unit * made * (merges + 1)
    for mine, other in zip(got.v, want.v, strict=True):
        assert abs(mine - other) <= unit * 4 * made * (merges + 1) ** 2 * largest


@pytest.mark.parametrize("base", BASES)
@given(keys=KEYS, order=st.permutations(range(5)))
def test_the_parts_merge_to_the_union(base: int | str, keys: list[Key], order: list[int]) -> None:
    """attention(J) = merge(attention(J_1), ..., attention(J_5)), any partition with empty parts, any order."""
    parts = [_over([key for key in keys if key.part == part], base) for part in order]
    _assert_equal(_merged(parts, base), _over(keys, base), keys, 1)


@pytest.mark.parametrize("base", BASES)
@given(keys=KEYS, picks=st.lists(st.integers(0, 4), min_size=8, max_size=8))
def test_any_tree_of_merges_gives_the_union(base: int | str, keys: list[Key], picks: list[int]) -> None:
    """Two parts at a time, whichever, until one is left."""
    left = [_over([key for key in keys if key.part == part], base) for part in range(5)]
    for step in range(4):
        a = left.pop(picks[2 * step] % len(left))
        b = left.pop(picks[2 * step + 1] % len(left))
        left.append(_merged([a, b], base))
    _assert_equal(left[0], _over(keys, base), keys, 4)


def test_worked_example() -> None:
    """semantics.md, section 1: scores 1, 2, 3, 0 and values 10, 20, 30, 40, whole and in two halves."""
    a, b = attention([1.0, 2.0], [[10.0], [20.0]]), attention([3.0, 0.0], [[30.0], [40.0]])
    assert [f"{float(x):.3f}" for x in (a.s, b.s)] == ["3.337", "4.398"]
    for state in (merge([a.v, b.v], [a.s, b.s], 2), attention([1.0, 2.0, 3.0, 0.0], [[10.0], [20.0], [30.0], [40.0]])):
        assert (f"{float(state.v[0]):.2f}", f"{float(state.s):.3f}") == ("26.21", "4.963")
    natural = attention([1.0, 2.0, 3.0, 0.0], [[10.0], [20.0], [30.0], [40.0]], "e")
    assert f"{float(natural.s):.3f}" == "3.440"
    assert f"{math.log(math.e + math.e**2 + math.e**3 + 1):.3f}" == "3.440"


def test_no_maximum_is_needed() -> None:
    far = attention([1e6, 1e6, -1e6], [[1.0], [2.0], [1e30]], "e")
    assert far.v[0] == 1.5
    assert abs(far.s - 1_000_000 - context().ln2) < context().mpf(2) ** (20 - PRECISION)


def test_masked_keys_are_not_looked_at() -> None:
    ctx = context()
    assert attention([], [], 2, dim=2) == Exact((ctx.zero,) * 2, ctx.ninf)
    assert attention([-math.inf], [[math.nan]], 2) == Exact((ctx.zero,), ctx.ninf)
    assert attention([-math.inf, 0.0], [[math.nan], [3.0]], 2) == Exact((ctx.mpf(3),), ctx.zero)


@pytest.mark.parametrize("fault", [math.nan, math.inf])
def test_faults_surface(fault: float) -> None:
    state = attention([0.0, fault], [[1.0], [2.0]])
    assert math.isnan(state.v[0])
    assert math.isnan(state.s)
    state = attention([0.0, -5000.0], [[1.0, 2.0], [3.0, fault]])
    assert [math.isnan(x) for x in (*state.v, state.s)] == [False, True, False]


@pytest.mark.parametrize(
    ("call", "words"),
    [(lambda: attention([], []), "dim must say"), (lambda: attention([0.0], [[1.0]], 10), "must be 2 or 'e'")],
)
def test_what_cannot_be_answered_is_refused(call: Any, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        call()
