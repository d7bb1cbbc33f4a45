"""The end of a run that has so many minutes: a property begun before it is cut short, one not begun is left out.

A property that has already failed is not cut short: its input is still being made smaller.
"""

from __future__ import annotations

import time

_until: float | None = None
_failing = False


class TimeIsUp(BaseException):
    """No further example. Not an Exception: neither Hypothesis nor the target is to catch it and go on."""


def end_at(moment: float | None) -> None:
    """Sets the end, in seconds since the epoch; None for no end."""
    global _until
    _until = moment


def property_begins() -> None:
    """Of what failed before nothing counts any more."""
    global _failing
    _failing = False


def has_failed() -> None:
    """Notes that the property at hand has an input that breaks it."""
    global _failing
    _failing = True


def is_over() -> bool:
    """Whether the end has come."""
    return _until is not None and time.time() >= _until


def check() -> None:
    """Raises TimeIsUp if the end has come and the property at hand has not failed."""
    if not _failing and is_over():
        raise TimeIsUp
