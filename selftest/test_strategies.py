"""The strategies: every regime is reached and is what it says, a failure shrinks to a line, only what is claimed is drawn."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy
import pytest
import torch
from hypothesis import HealthCheck, Phase, find, given, settings
from hypothesis import strategies as st
from numpy.random import PCG64, Generator

from implementations.ours import implementation as ours
from mergelaws.implementation import DTYPES, OPERATIONS, Implementation
from properties import strategies, subject
from properties.cases import GARBAGE, Problem, Segments, States
from properties.layouts import LAYOUTS, laid_out
from properties.regimes import LSE_REGIMES, V_REGIMES, Array
from properties.test_unsplit import MASKED, Split, splits

# Not Phase.explain: it draws on after the smallest failure was found, and `find` returns what was drawn last.
SEARCH = settings(
    max_examples=10_000,  # a search ends where it finds what it looks for
    phases=(Phase.generate, Phase.shrink),
    derandomize=True,
    database=None,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)
# Hypothesis takes the name of a regime, or one number spelled out, for the simplest: whichever it meets first.
PLAINEST_V = ((1.0,), "ordinary")
PLAINEST = [States(s=s, v=v) for s in ((0.0,), (-numpy.inf,), "near") for v in PLAINEST_V]
NARROW = Implementation(
    "narrow",
    merge_state=lambda v_a, s_a, v_b, s_b: (v_a, s_a),
    merge_states=lambda v, s: (v[:, 0], s[:, 0]),
    lse_base="e",
    dtypes=("bfloat16",),
    head_dims=(64, 128),
    max_heads=2,
    max_states=9,
    nan_lse="any",
    empty_v="finite",
)


@pytest.fixture(autouse=True)
def judged() -> Iterator[None]:
    """The strategies ask the subject what it claims."""
    with subject.using(ours):
        yield


def simplest(strategy: st.SearchStrategy[Any], holds: Callable[[Any], bool] = lambda _: True) -> Any:
    """What Hypothesis shrinks a failure to that every drawn value with `holds` shows."""
    return find(strategy, holds, settings=SEARCH)


@pytest.fixture(scope="module")
def drawn() -> list[Problem]:
    """2,500 problems, as the properties see them."""
    kept: list[Problem] = []

    @settings(SEARCH, max_examples=2500, phases=(Phase.generate,))
    @given(problem=strategies.problems())
    def collect(problem: Problem) -> None:
        kept.append(problem)

    with subject.using(ours):
        collect()
    return kept


def test_every_regime_and_every_choice_is_reached(drawn: list[Problem]) -> None:
    """Of operation, dtype, base, N, D, H, s, v, garbage, and v and s spelled out; each often enough to matter in 50 draws."""
    cases = [problem.states for problem in drawn]
    wanted: dict[str, tuple[Sequence[object], int]] = {
        "dtype": (DTYPES, 100),
        "base": ((2, "e"), 100),
        "garbage": (tuple(GARBAGE), 40),
        "count": ([count for count in strategies.COUNTS if count], 10),
        "dim": (strategies.HEAD_DIMS, 20),
        "heads": ((1, 2, 3, 4), 40),
        "rows": ((1, 2, 3), 40),
        "s": (tuple(LSE_REGIMES), 10),
        "v": (tuple(V_REGIMES), 10),
    }
    for name, (values, least) in wanted.items():
        seen = Counter(getattr(case, name) for case in cases)
        assert not [(value, seen[value]) for value in values if seen[value] < least], name
    operations = Counter(problem.operation for problem in drawn)
    assert min(operations[name] for name in OPERATIONS) > 100
    for name in ("s", "v"):
        assert sum(isinstance(getattr(case, name), tuple) for case in cases) > 200


def test_empty_states_are_drawn_in_every_place(drawn: list[Problem]) -> None:
    """First, last and between two that are not empty; one, all but one, and all of a row."""
    seen: Counter[str] = Counter()
    for problem in drawn:
        empty = torch.isneginf(problem.states.tensors()[1]).movedim(1, 2).reshape(-1, problem.states.count)
        if empty.shape[1] > 2:
            seen["first"] += bool((empty[:, 0] & ~empty[:, 1:].any(1)).any())
            seen["last"] += bool((empty[:, -1] & ~empty[:, :-1].any(1)).any())
            seen["between"] += bool((empty[:, 1:-1].any(1) & ~empty[:, 0] & ~empty[:, -1]).any())
            seen["all but one"] += bool((empty.sum(1) == empty.shape[1] - 1).any())
            seen["all"] += bool(empty.all(1).any())
    assert len(seen) == 5 and min(seen.values()) >= 5, seen


def test_a_failure_of_everything_shrinks_to_the_plainest_case() -> None:
    """One row of two states, one head, one column, in float32 and base 2."""
    found = simplest(strategies.problems())
    assert found.operation == "merge_state" and found.states in PLAINEST


@pytest.mark.parametrize(
    "odd",
    ({"s": "mostly empty"}, {"s": "edges"}, {"v": "limits"}, {"garbage": "nan"}, {"dtype": "bfloat16"}, {"base": "e"},
     {"count": 33}, {"dim": 80}, {"heads": 4}, {"rows": 3}),
    ids=str,
)  # fmt: skip
def test_a_failure_of_one_kind_shrinks_to_that(odd: dict[str, Any]) -> None:
    """One field away from the plainest case."""
    ((name, value),) = odd.items()
    found = simplest(strategies.states(), lambda case: getattr(case, name) == value)
    assert found in [replace(case, **odd) for case in PLAINEST]


def test_a_failure_that_needs_several_things_shrinks_to_those() -> None:
    """An empty state after one that is not, NaN behind it, in base e."""

    def fails(case: States) -> bool:
        if case.garbage != "nan" or case.base != "e":
            return False
        _, s = case.tensors()
        return bool((torch.isneginf(s[:, 1:]) & ~torch.isneginf(s[:, :-1])).any())

    found = simplest(strategies.states(), fails)
    assert (found.dtype, found.rows, found.heads, found.dim, found.count) == ("float32", 1, 1, 1, 2)
    assert found.s in ((0.0, -numpy.inf), "mostly empty", "some empty") and found.v in (*PLAINEST_V, (0.0,))
    assert len(repr(found)) < 160


def test_numbers_with_a_history_are_reached() -> None:
    """Each special s, and the empty one, among a few thousand."""
    seen: set[float] = set()

    @settings(SEARCH, max_examples=1500, phases=(Phase.generate,))
    @given(numbers=st.lists(strategies.lses(), min_size=10, max_size=10))
    def collect(numbers: list[float]) -> None:
        seen.update(numbers)

    collect()
    assert {float(numpy.float32(number)) for number in (*strategies.SPECIAL_LSES, strategies.EMPTY)} <= seen


def test_segments_are_reached_empty_first_last_and_within() -> None:
    """And states before and after all segments."""
    drawn = strategies.segments()
    for at in (0, -1):
        found = simplest(drawn, lambda case, at=at: len(case.lengths) > 1 and case.lengths[at] == 0)  # type: ignore[misc]
        assert len(found.lengths) == 2 and found.lengths[at] == 0
    within = simplest(drawn, lambda case: len(case.lengths) > 2 and case.lengths[1] == 0)
    assert within.lengths == (2, 0, 2) and within.before == within.after == 0
    for name in ("before", "after"):
        found = simplest(drawn, lambda case, name=name: getattr(case, name) > 0)  # type: ignore[misc]
        assert getattr(found, name) == 1 and isinstance(found, Segments)


def test_splits_are_reached_empty_masked_and_of_many_parts() -> None:
    """An empty part, a masked key, every key in one part, and parts whose keys are not neighbours."""

    def parts(split: Split) -> list[int]:
        return [split.part_of[key % len(split.part_of)] % split.parts for key in range(len(split.scores))]

    empty = simplest(splits(), lambda split: set(parts(split)) != set(range(split.parts)))
    assert empty.parts == 2 and len(empty.scores) == 1
    masked = simplest(splits(), lambda split: MASKED in split.scores)
    assert masked.scores == (MASKED,) and masked.parts == 1
    mixed = simplest(splits(), lambda split: parts(split)[:3] == [0, 1, 0])
    assert len(mixed.scores) == 3 and mixed.parts == 2
    assert simplest(splits(), lambda split: len(set(parts(split))) == 6).parts == 6


def _s(regime: str, count: int = 9) -> Array:
    return LSE_REGIMES[regime](Generator(PCG64([3])), (40, count, 5))


def _gaps(s: Array) -> Array:
    """How far each state is below the heaviest of its row."""
    gaps: Array = s.max(axis=1, keepdims=True) - s
    return gaps


def test_the_regimes_of_s_are_what_they_say() -> None:
    """Gaps, magnitudes and empties, of 200 rows of 9 states."""
    assert (_gaps(_s("near")) < 30.0).all()
    assert (_gaps(_s("equal")) == 0.0).all()
    ulps = _s("ulps apart")
    assert (
        (_gaps(ulps) <= 16.0 * 2.0**-23 * numpy.abs(ulps)).all() and numpy.abs(ulps).min() < 1e-2 and ulps.max() > 1e5
    )
    wide = _gaps(_s("wide"))
    assert all(((low < wide) & (wide < high)).any() for low, high in ((0, 24), (24, 126), (126, 149), (149, 300)))
    edges = _gaps(_s("edges", 40))
    assert all((numpy.abs(edges - edge) <= 1e-6 * edge).any() for edge in (24.0, 126.0, 149.0, 3e38))
    offset = numpy.abs(_s("offset"))
    assert offset.min() < 100.0 and offset.max() > 1e6
    huge = _s("huge")
    assert huge.min() < -1e38 and huge.max() > 1e38 and numpy.isfinite(huge.astype(numpy.float32)).all()
    tiny = numpy.abs(_s("tiny"))
    assert 0.0 < tiny.min() < 1e-25 and tiny.max() < 1e-3
    dominant = _s("dominant")
    assert ((_gaps(dominant) == 0.0).sum(axis=1) == 1).all()
    assert set(dominant.argmax(axis=1).ravel()) == set(range(9))


def test_the_empty_regimes_are_empty_in_every_position() -> None:
    """Some: none to all of a row; mostly: all but one, any; all: all."""
    some = numpy.isneginf(_s("some empty", 3))
    assert {tuple(row) for row in some.transpose(0, 2, 1).reshape(-1, 3)} == {
        (a, b, c) for a in (False, True) for b in (False, True) for c in (False, True)
    }
    mostly = numpy.isfinite(_s("mostly empty"))
    assert (mostly.sum(axis=1) == 1).all() and set(mostly.argmax(axis=1).ravel()) == set(range(9))
    assert numpy.isneginf(_s("all empty")).all()
    assert all(not numpy.isinf(_s(name)).any() for name in strategies.FILLED)


@pytest.mark.parametrize("dtype", DTYPES)
def test_the_regimes_of_v_are_what_they_say(dtype: str) -> None:
    """As stored in the dtype: agreement, cancellation, the limits, subnormals, zeros of either sign, sinks."""

    def v(regime: str) -> torch.Tensor:
        return States(dtype, 2, 9, 5, 33, 4, "near", regime, seed=5).tensors()[0].cpu().double()

    assert (v("constant") == v("constant")[:, :1]).all()
    cancelling = v("cancelling")
    kept = cancelling.sum(1).abs() / cancelling.abs().sum(1)
    assert (kept < 0.05).any()
    top = float(torch.finfo(getattr(torch, dtype)).max) / (1.0 if dtype == "float16" else 16.0)
    assert float(v("limits").abs().min()) > 0.4 * top and {-1.0, 1.0} == set(v("limits").sign().unique().tolist())
    mixed = v("mixed").abs()
    assert float(mixed.max()) > 0.1 * top and float(mixed.min()) < 1e-3
    small = v("small")
    zeros = small[small == 0.0]
    assert torch.signbit(zeros).any() and not torch.signbit(zeros).all() and float(small.abs().max()) < 2e-4
    assert (small.abs() < torch.finfo(torch.float16).tiny).any()
    sinks = (v("sinks") == 0.0).all(-1)
    assert sinks.any() and not sinks.all()
    scalable = v("scalable")
    assert ((scalable > 0).all(1) | (scalable < 0).all(1)).all()


def test_no_two_rows_of_a_regime_are_alike() -> None:
    """Else a kernel that reads its neighbour would be right."""
    for name in LSE_REGIMES:
        if name != "all empty":
            rows = _s(name).transpose(0, 2, 1).reshape(-1, 9)
            assert len(numpy.unique(rows, axis=0)) > 0.9 * len(rows), name
    v, s = States(rows=4, heads=3, dim=2, count=3, s="near", v="ordinary").tensors()
    assert len(v.unique()) == v.numel() and len(s.movedim(1, 2).reshape(-1, 3).unique(dim=0)) == 12


def test_layouts_keep_the_numbers_and_change_the_strides() -> None:
    """Each layout but the first is another walk through memory, and reads the same, but for what it repeats."""
    tensor = torch.arange(24.0).reshape(2, 3, 4)
    seen = set()
    for layout in LAYOUTS:
        view = laid_out(tensor, layout)
        seen.add((view.stride(), view.storage_offset()))
        assert view.shape == tensor.shape
        assert layout.startswith("expanded") or torch.equal(view, tensor)
    assert len(seen) == len(LAYOUTS)


@settings(SEARCH, max_examples=300)
@given(data=st.data())
def test_only_what_is_claimed_is_drawn(data: st.DataObject) -> None:
    """Base, dtypes, sizes, operations and policies of a narrow implementation."""
    with subject.using(NARROW):
        problem = data.draw(strategies.problems())
        case = problem.states
        assert problem.operation in ("merge_state", "merge_states")
        assert (case.dtype, case.base) == ("bfloat16", "e") and case.dim == 64
        assert case.heads <= 2 and case.count <= 9 and case.garbage not in ("nan", "inf")
        assert data.draw(strategies.faulty_lses()) == numpy.inf
        lengths = data.draw(strategies.segments()).lengths
        assert max(lengths) <= 9
        v, s = case.tensors()
        assert v.dtype == torch.bfloat16 and v.shape == (case.rows, case.count, case.heads, 64)
        assert s.dtype == torch.float32 and torch.isfinite(v).all() and not torch.isnan(s).any()
