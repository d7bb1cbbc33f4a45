"""The implementation under test. Properties read it; `conftest.py` and the mutant runner set it."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator
from typing import TYPE_CHECKING

import torch

from mergelaws.implementation import Implementation

if TYPE_CHECKING:
    from properties.cases import Problem

_current: Implementation | None = None


def current() -> Implementation:
    """The implementation that the properties judge. Raises RuntimeError before one was chosen."""
    if _current is None:
        raise RuntimeError("no implementation was chosen; run pytest with --impl, or call properties.subject.use")
    return _current


def use(implementation: Implementation) -> None:
    """Makes `implementation` the one that the properties judge."""
    global _current
    _current = implementation


@contextlib.contextmanager
def using(implementation: Implementation) -> Iterator[None]:
    """Judges `implementation` within the block, and the former one again after it."""
    global _current
    before, _current = _current, implementation
    try:
        yield
    finally:
        _current = before


def device() -> str:
    """The device type that the tensors of the cases live on: CUDA where there is one and the implementation takes it."""
    claimed = current().devices
    return "cuda" if torch.cuda.is_available() and "cuda" in claimed else "cpu"


def bases() -> tuple[int | str, ...]:
    """The bases of the logarithm that the implementation takes."""
    return current().bases


def claims(name: str) -> bool:
    """Whether the implementation claims `name` bit for bit."""
    return name in current().bitwise


def offers(operation: str) -> bool:
    """Whether the implementation offers `operation`; "conversions" are this project's own functions between bases."""
    return current().name == "ours" if operation == "conversions" else operation in current().operations


def missing(operations: tuple[str, ...], any_of: tuple[str, ...]) -> str:
    """Which operations a property needs and the implementation does not offer, in words; "" if it can be asked."""
    absent = [name for name in operations if not offers(name)]
    if not any(offers(name) for name in any_of):
        absent.append(" or ".join(any_of))
    return " and ".join(absent)


def takes(problem: Problem) -> bool:
    """Whether the implementation claims to take a problem whose states are spelled out."""
    claims, case = current(), problem.states
    lses = case.s if isinstance(case.s, tuple) else ()
    values = case.v if isinstance(case.v, tuple) else ()
    return (
        offers(problem.operation)
        and case.dtype in claims.dtypes
        and case.base in bases()
        and (claims.head_dims is None or case.dim in claims.head_dims)
        and (claims.max_states is None or case.count <= claims.max_states)
        and not (claims.nan_lse == "any" and any(math.isnan(s) for s in lses))
        and not (claims.empty_v == "finite" and not all(math.isfinite(v) for v in values))
    )
