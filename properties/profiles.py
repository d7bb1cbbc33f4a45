"""How Hypothesis draws: the profiles, the seed of each property, and what is not made smaller.

A few private attributes of Hypothesis are set here and nowhere else, each with what has no public way.
"""

from __future__ import annotations

import random
import unittest
from collections.abc import Iterable
from typing import Any

from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import RuleBasedStateMachine

from properties import database


def register(implementation: str, examples: int) -> None:
    """The three profiles, with the example database of `implementation`. examples: per property, of a night.

    Hypothesis's default profile is the parent, so that an environment with CI set fuzzes as any other does.
    """
    common: dict[str, Any] = {
        "parent": settings.get_profile("default"),
        "database": database.database(implementation),
        "deadline": None,  # the interpreter takes milliseconds for a launch, the first one far longer
        "suppress_health_check": [HealthCheck.too_slow],  # the same
        "report_multiple_bugs": False,  # one smallest input per property
        "print_blob": True,
        "derandomize": False,
    }
    settings.register_profile("quick", max_examples=50, **common)
    settings.register_profile("nightly", max_examples=examples, **common)
    settings.register_profile("replay", phases=(Phase.explicit, Phase.reuse), **common)
    settings.load_profile("quick")


def seed_of(wish: str | None) -> int:
    """The seed that was asked for, or a new one. Raises ValueError if it is no integer."""
    if wish is None:
        return random.SystemRandom().randrange(2**32)
    try:
        return int(wish)
    except ValueError:
        raise ValueError(f"--hypothesis-seed is {wish!r}; it must be an integer") from None


def give_seed(tests: Iterable[Any], seed: int) -> None:
    """Gives each test, and each state machine, a seed of its own: with one for all of them they would draw alike.

    Hypothesis's own ways to give a seed (its option, @seed) switch the database off, and nothing is kept or replayed.
    """
    for test in (*tests, *RuleBasedStateMachine.__subclasses__()):
        test._hypothesis_internal_use_seed = f"{seed} {test.__name__}"  # noqa: SLF001


def without_shrinking(test: Any) -> None:
    """That a known failure fails is all that is asked; the search for its smallest input takes most of the time."""
    profile = settings()  # the one that was loaded
    phases = tuple(phase for phase in profile.phases if phase not in (Phase.shrink, Phase.explain))
    quick = settings(profile, phases=phases)
    if hasattr(test, "hypothesis"):
        test._hypothesis_internal_use_settings = quick  # noqa: SLF001  # @settings may stand on a test only once
    elif isinstance(getattr(test, "__self__", None), unittest.TestCase):
        type(test.__self__).settings = quick
