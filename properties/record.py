"""What a run has seen: examples and regimes per law, and the highest error over bound per law, operation and dtype.

One record per process. Under pytest-xdist the workers' records are sent to the controller and added up there.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from hypothesis import currently_in_test_context, event, target

from properties import progress


@dataclass
class Record:
    """Counts and worst ratios; the keys of `worst` are (law, operation, dtype, output)."""

    examples: Counter[int] = field(default_factory=Counter)
    tests: Counter[str] = field(default_factory=Counter)
    regimes: Counter[str] = field(default_factory=Counter)
    worst: dict[tuple[int, str, str, str], float] = field(default_factory=dict)

    def add(self, other: Record) -> None:
        """Adds what another process has seen."""
        self.examples.update(other.examples)
        self.tests.update(other.tests)
        self.regimes.update(other.regimes)
        for key, ratio in other.worst.items():
            self.worst[key] = max(ratio, self.worst.get(key, 0.0))

    def as_plain(self) -> dict[str, Any]:
        """The record as lists, dicts, strings and numbers."""
        return {
            "examples": dict(self.examples),
            "tests": dict(self.tests),
            "regimes": dict(self.regimes),
            "worst": [[*key, ratio] for key, ratio in self.worst.items()],
        }

    @classmethod
    def from_plain(cls, plain: dict[str, Any]) -> Record:
        """The inverse of `as_plain`."""
        worst = {(int(law), operation, dtype, output): ratio for law, operation, dtype, output, ratio in plain["worst"]}
        examples = Counter({int(law): count for law, count in plain["examples"].items()})
        return cls(examples, Counter(plain["tests"]), Counter(plain["regimes"]), worst)


_record = Record()
_law = 0
_highest: float | None = None


def current() -> Record:
    """This process's record."""
    return _record


def reset() -> None:
    """Starts a new record."""
    global _record
    _record = Record()


def example_begins(law: int, test: str) -> None:
    """Counts one example of a property of `law`; what follows belongs to it."""
    global _law, _highest
    _law, _highest = law, None
    _record.examples[law] += 1
    _record.tests[test] += 1
    progress.note(law, test, _record.tests[test])


def example_ends() -> None:
    """Tells Hypothesis the example's highest ratio, so that the search climbs towards the bound."""
    if _highest is not None:
        target(min(_highest, 1e6), label="error over bound")


def regime(name: str) -> None:
    """Notes that the example belongs to the regime `name`."""
    if currently_in_test_context():
        event(name)
    _record.regimes[name] += 1


def ratio(operation: str, dtype: str, output: str, value: float) -> None:
    """Notes an error over its bound, for `output` "v" or "s"."""
    global _highest
    _highest = value if _highest is None else max(_highest, value)
    key = (_law, operation, dtype, output)
    _record.worst[key] = max(value, _record.worst.get(key, 0.0))
