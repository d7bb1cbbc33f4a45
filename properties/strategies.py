"""What cases are drawn from. Strategies draw only what the implementation under test claims to take.

They are functions that look the claims up while drawing, so that one process can judge many implementations.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy
from hypothesis import strategies as st

from mergelaws.implementation import OPERATIONS
from properties import subject
from properties.call import TWO_STATES
from properties.cases import GARBAGE, Problem, Segments, States
from properties.regimes import LSE_REGIMES, V_REGIMES

HEAD_DIMS = (1, 2, 3, 5, 8, 16, 24, 33, 64, 80)
COUNTS = (2, 0, 1, 3, 4, 5, 7, 8, 9, 16, 17, 31, 32, 33, 40)
SEEDS = st.integers(0, 2**20)

# Numbers with a history: see public_cases.json and the edges of regimes.py.
SPECIAL_LSES = (
    0.0, 1.0, -1.0, 10.0, 0.5, -0.0, 1e-30, -1e-30, 24.0, -24.0, 126.0, -126.0, -127.5, 128.0, -149.0, 1000.2, 1000.0,
    70000.0, -66854.86, -5e4, -1e4, -1e30, 1e30, 3e38, -3e38,
)  # fmt: skip
EMPTY = float("-inf")


def _float32(number: float) -> float:
    return float(numpy.float32(number))


@functools.cache
def _one_of(options: tuple[Any, ...]) -> st.SearchStrategy[Any]:
    """`st.sampled_from`, built once: to build one per draw costs more than the draw."""
    return st.sampled_from(options)


@st.composite
def _claimed(draw: Any, options: Callable[[], tuple[Any, ...]]) -> Any:
    """One of the options that the implementation under test leaves, looked up while drawing."""
    return draw(_one_of(options()))


def dtypes() -> st.SearchStrategy[str]:
    """A dtype of v that is claimed."""
    return _claimed(lambda: tuple(subject.current().dtypes))


def lse_bases() -> st.SearchStrategy[int | str]:
    """A base that is claimed."""
    return _claimed(subject.bases)


def head_dims(among: Sequence[int] = HEAD_DIMS) -> st.SearchStrategy[int]:
    """A head size that is claimed: one of `among`, or the smallest that is taken if none of them is."""

    def options() -> tuple[int, ...]:
        claimed = subject.current().head_dims
        taken = tuple(dim for dim in among if claimed is None or dim in claimed)
        return taken or (min(claimed or among),)

    return _claimed(options)


def counts(least: int = 1, most: int = 40) -> st.SearchStrategy[int]:
    """A number of states N that is claimed."""

    def options() -> tuple[int, ...]:
        limit = subject.current().max_states
        return tuple(count for count in COUNTS if least <= count <= (most if limit is None else min(most, limit)))

    return _claimed(options)


def head_counts(most: int) -> st.SearchStrategy[int]:
    """A number of heads H from 1 to `most` that is claimed."""

    def options() -> tuple[int, ...]:
        limit = subject.current().max_heads
        return tuple(range(1, 1 + (most if limit is None else min(most, limit))))

    return _claimed(options)


def finite_lses() -> st.SearchStrategy[float]:
    """One s: special numbers, and any float32 up to 3e38 in size."""
    return st.one_of(
        st.sampled_from([_float32(number) for number in SPECIAL_LSES]),
        st.floats(-200, 200, width=32),
        st.floats(_float32(-3e38), _float32(3e38), width=32),
    )


def lses() -> st.SearchStrategy[float]:
    """One s, or that of an empty state."""
    return st.one_of(finite_lses(), st.just(EMPTY))


def values() -> st.SearchStrategy[float]:
    """One element of v that every dtype can hold, from the least normal float16 up."""
    return st.one_of(
        st.sampled_from([1.0, 0.0, 2.0, -1.0, -0.0, 0.5, 3.0, 1.0 / 3.0, 1000.0, 6e4]),
        st.floats(-6e4, 6e4, width=16, allow_subnormal=False),
    )


LSE_NAMES = tuple(LSE_REGIMES)
V_NAMES = tuple(V_REGIMES)
FILLED = tuple(name for name in LSE_NAMES if "empty" not in name)


def garbage() -> st.SearchStrategy[str]:
    """What the v of empty states holds: anything finite, and where it is claimed to be ignored, anything."""
    finite = tuple(kind for kind in GARBAGE if kind not in ("nan", "inf"))
    return _claimed(lambda: tuple(GARBAGE) if subject.current().empty_v == "ignored" else finite)


def _spelled_or_regime(numbers: st.SearchStrategy[float], regimes: Sequence[str]) -> st.SearchStrategy[Any]:
    """A tuple of up to six numbers, or the name of a regime."""
    return st.one_of(st.lists(numbers, min_size=1, max_size=6).map(tuple), st.sampled_from(tuple(regimes)))


def states(
    count: st.SearchStrategy[int] | None = None,
    lse_regimes: Sequence[str] = LSE_NAMES,
    v_regimes: Sequence[str] = V_NAMES,
    s_numbers: st.SearchStrategy[float] | None = None,
    v_numbers: st.SearchStrategy[float] | None = None,
    rows: int = 3,
    heads: int = 4,
    dims: Sequence[int] = HEAD_DIMS,
) -> st.SearchStrategy[States]:
    """States of the regimes named, or of numbers spelled out (default: `lses()` and `values()`), in any claimed dtype.

    `st.nothing()` for numbers leaves the regimes alone.
    """
    return st.builds(
        States,
        dtype=dtypes(),
        base=lse_bases(),
        rows=st.integers(1, rows),
        heads=head_counts(heads),
        dim=head_dims(dims),
        count=counts() if count is None else count,
        s=_spelled_or_regime(lses() if s_numbers is None else s_numbers, lse_regimes),
        v=_spelled_or_regime(values() if v_numbers is None else v_numbers, v_regimes),
        garbage=garbage(),
        seed=SEEDS,
    )


def filled_states(**wanted: Any) -> st.SearchStrategy[States]:
    """As `states`, without empty ones."""
    named: dict[str, Any] = {"lse_regimes": FILLED, "s_numbers": finite_lses()} | wanted
    return states(**named)


def pairs(**wanted: Any) -> st.SearchStrategy[States]:
    """As `states`, two states each."""
    return states(count=st.just(2), **wanted)


def operations(among: Sequence[str] = OPERATIONS) -> st.SearchStrategy[str]:
    """An operation that is offered."""
    return _claimed(lambda: tuple(name for name in among if subject.offers(name)))


def problems(
    filled: bool = False, among: Sequence[str] = OPERATIONS, count: st.SearchStrategy[int] | None = None, **wanted: Any
) -> st.SearchStrategy[Problem]:
    """States and an operation of `among` that merges them; `count` is N for the N-state operations."""
    kind = filled_states if filled else states
    operation, two, many = operations(among), kind(count=st.just(2), **wanted), kind(count=count, **wanted)

    @st.composite
    def one(draw: Any) -> Problem:
        name = draw(operation)
        return Problem(name, draw(two if name in TWO_STATES else many))

    return one()


def segments(**wanted: Any) -> st.SearchStrategy[Segments]:
    """A ragged problem with segments of any length, empty ones too, and unused states around them."""
    return st.builds(
        Segments,
        states=states(count=st.just(1), rows=1, **wanted),
        lengths=st.lists(counts(least=0, most=17), min_size=1, max_size=5).map(tuple),
        before=st.integers(0, 2),
        after=st.integers(0, 2),
        wide_index=st.booleans(),
    )


def faulty_lses() -> st.SearchStrategy[float]:
    """An s that is no LSE, and for which the implementation has a policy."""
    infinity, nan = float("inf"), float("nan")
    return _claimed(lambda: (infinity,) if subject.current().nan_lse == "any" else (infinity, nan))


def places() -> st.SearchStrategy[int]:
    """A place in a tensor, taken modulo its number of elements."""
    return st.integers(0, 2**16)
