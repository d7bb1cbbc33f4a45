"""The laws of merging, by number, and the mark that says which law a property belongs to."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar

import pytest
from hypothesis.errors import HypothesisException

from mergelaws.implementation import OPERATIONS
from properties import call, deadline, record

LAWS = {
    1: "within the bound of the exact merge",
    2: "split and merge equals unsplit",
    3: "commutative",
    4: "associative",
    5: "empty is the identity",
    6: "not idempotent",
    7: "N states equal any tree of two",
    8: "base 2 and base e agree",
    9: "a shift of s shifts s alone",
    10: "v scales exactly",
    11: "v and s stay in range",
    12: "more weight, nearer",
    13: "a row is on its own",
    14: "only the outputs are written",
    15: "strides do not matter",
    16: "in place equals out of place",
    17: "bad arguments are refused",
    18: "any size",
    19: "same inputs, same bits",
    20: "gradients",
}

Test = TypeVar("Test", bound=Callable[..., Any])


def law(number: int, *operations: str, any_of: tuple[str, ...] = OPERATIONS) -> Callable[[Test], Test]:
    """Marks a property, or a test without Hypothesis, as one of law `number`, and counts its examples.

    operations: those that it needs, all of them; any_of: those of which it needs one. An implementation without them is
    not asked. Goes above `@given`.
    """
    assert number in LAWS, f"there is no law {number}"
    mark_of_law = pytest.mark.law(number, operations=operations, any_of=any_of)

    def mark(test: Test) -> Test:
        handle = getattr(test, "hypothesis", None)
        counted: Any = test
        if handle is not None:
            handle.inner_test = _counted(number, test.__name__, handle.inner_test, targets=True)
        elif not isinstance(test, type):
            counted = _counted(number, test.__name__, test, targets=False)
        marked: Test = mark_of_law(counted)
        return marked

    return mark


def _counted(number: int, name: str, test: Callable[..., Any], targets: bool) -> Callable[..., Any]:
    @functools.wraps(test)
    def counted(*arguments: Any, **keywords: Any) -> None:
        deadline.check()
        call.forget()
        record.example_begins(number, name)
        try:
            test(*arguments, **keywords)
        except Exception as error:
            if not isinstance(error, HypothesisException):  # which are for Hypothesis: to draw another example, say
                deadline.has_failed()
            raise
        if targets:
            record.example_ends()

    return counted
