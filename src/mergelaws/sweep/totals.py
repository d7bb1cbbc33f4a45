"""What a sweep has come to so far, in a file that a killed one resumes from."""

from __future__ import annotations

import json
import time
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from mergelaws.sweep.judging import Finding, Verdict
from mergelaws.writing import write_whole

DIRECTORY = Path(".hypothesis") / "sweeps"
_SAVED_EVERY = 1.0  # seconds
MOST_FAILURES = 100


@dataclass
class Totals:
    """next: the first row that was not judged. settled: rows that went to mpmath. over: rows over the bound.

    highest: by operation, dtype and output. failures: the first rows over the bound. seconds: of all runs together.
    """

    arguments: dict[str, Any]
    next: int = 0
    states: int = 0
    settled: int = 0
    over: int = 0
    seconds: float = 0.0
    highest: dict[tuple[str, str, str], Finding] = field(default_factory=dict)
    failures: list[Finding] = field(default_factory=list)

    def add(self, verdict: Verdict, rows: int, states: int) -> None:
        """Takes the verdict on the next `rows` rows."""
        self.next += rows
        self.states += states
        self.settled += verdict.settled
        self.over += verdict.over
        for output, finding in verdict.highest.items():
            key = finding.operation, finding.dtype, output
            if key not in self.highest or _of(finding, output) > _of(self.highest[key], output):
                self.highest[key] = finding
        self.failures = (self.failures + verdict.wrong)[:MOST_FAILURES]

    def ratio(self, key: tuple[str, str, str]) -> float:
        """The highest ratio under a key of `highest`."""
        return _of(self.highest[key], key[2])


class Checkpoint:
    """The file of one sweep: what it was asked for is in its name, so another one has another file."""

    def __init__(self, name: str, arguments: dict[str, Any]) -> None:
        self.file = DIRECTORY / f"{name}.json"
        self._arguments, self._saved = arguments, time.monotonic()

    def load(self) -> Totals:
        """The totals of the run that was killed, or new ones where none was or it was asked for something else."""
        if self.file.is_file():
            told = json.loads(self.file.read_text())
            if told["arguments"] == self._arguments:
                highest = {tuple(one["key"]): _finding(one["finding"]) for one in told["highest"]}
                failures = [_finding(one) for one in told["failures"]]
                return Totals(**{**told, "highest": highest, "failures": failures})
        return Totals(self._arguments)

    def save(self, totals: Totals, now: bool = False) -> None:
        """Writes the totals, if they were not written just before."""
        if now or time.monotonic() - self._saved > _SAVED_EVERY:
            told = asdict(totals) | {
                "highest": [{"key": key, "finding": asdict(finding)} for key, finding in totals.highest.items()]
            }
            write_whole(self.file, json.dumps(told, indent=1) + "\n")
            self._saved = time.monotonic()

    def clear(self) -> None:
        """The sweep is done."""
        self.file.unlink(missing_ok=True)


def _finding(told: dict[str, Any]) -> Finding:
    return Finding(**{**told, "v": tuple(told["v"]), "s": tuple(told["s"])})


def _of(finding: Finding, output: str) -> float:
    return finding.v_ratio if output == "v" else finding.s_ratio
