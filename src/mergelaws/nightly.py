"""A night: what failed before, then rounds of the laws with fresh seeds until the time is up, and what it all came to.

Each round has twice the examples per property of the round before, so that a short night asks every property and a long
one asks deep. What a round has found is in the example database before the round ends: a night that is killed loses
nothing, and the next one begins with it.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from io import StringIO
from pathlib import Path
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from mergelaws import suite
from mergelaws.writing import write_whole

FIRST_ROUND, LAST_ROUND = 50, 5000  # examples per property
_GRACE = 1.0  # seconds that are not worth a round


@dataclass
class Night:
    """What the rounds of one night have told. Ratios are errors over their bounds, by operation, dtype and output."""

    rounds: int = 0
    examples: Counter[int] = field(default_factory=Counter)
    words: dict[int, str] = field(default_factory=dict)
    regimes: Counter[str] = field(default_factory=Counter)
    highest: dict[tuple[str, str, str], float] = field(default_factory=dict)
    failures: dict[tuple[int, str], dict[str, Any]] = field(default_factory=dict)
    errors: list[str] = field(default_factory=list)

    def add(self, report: dict[str, Any]) -> None:
        """Takes the report of one round, as `--laws-json` writes it."""
        self.rounds += 1
        for law in report["laws"]:
            self.examples[law["law"]] += law["examples"]
            self.words[law["law"]] = law["words"]
        self.regimes.update(report["regimes"])
        for one in report["worst"]:
            key = one["operation"], one["dtype"], one["output"]
            self.highest[key] = max(float(one["ratio"]), self.highest.get(key, 0.0))
        for found in report["broken"]:
            self.failures.setdefault((found["law"], found["property"]), found)
        self.errors += [words for words in report["errors"] if words not in self.errors]


def run(
    target: str, minutes: float, processes: int, laws: tuple[int, ...] = (), tell: Callable[[str], None] = print
) -> Night:
    """Replays what failed before, then runs rounds on `target` for so many minutes, in so many processes.

    laws: only these; () for all. Raises RuntimeError if a round could not be run at all.
    """
    end = time.time() + 60.0 * minutes
    night = Night()
    common = [sys.executable, "-m", "pytest", *suite.pytest_arguments(suite.enter(), target, processes, laws)]
    tell("replaying what failed before")
    _round(night, [*common, "--hypothesis-profile=replay", "-m", "hypothesis"])
    examples = FIRST_ROUND
    while time.time() < end - _GRACE:
        left = (end - time.time()) / 60.0
        tell(f"round {night.rounds}: {examples} examples per property, {left:.1f} minutes left")
        drawn = ["-m", "hypothesis"] if night.rounds > 1 else []  # what draws nothing tells nothing new the second time
        _round(night, [*common, "--hypothesis-profile=nightly", f"--examples={examples}", f"--until={end}", *drawn])
        examples = min(2 * examples, LAST_ROUND)
    return night


def records(target: str, night: Night) -> tuple[dict[tuple[str, str, str], float], Path]:
    """The highest ratios known before this night, here or in the suite's records, and the file that now holds its own."""
    from mergelaws import records as published  # noqa: PLC0415  # imports the suite, whose directory is known by now
    from properties.database import place  # noqa: PLC0415

    file = Path(".hypothesis") / "records" / f"{place(target)}.json"
    before: dict[tuple[str, str, str], float] = (
        {tuple(key.split()): ratio for key, ratio in json.loads(file.read_text()).items()} if file.is_file() else {}
    )
    for record in published.read(suite.directory()).values():
        if record.implementation == target:
            key = record.operation, record.dtype, record.output
            before[key] = max(record.ratio, before.get(key, 0.0))
    now = {key: max(night.highest.get(key, 0.0), before.get(key, 0.0)) for key in before | night.highest}
    write_whole(file, json.dumps({" ".join(key): ratio for key, ratio in sorted(now.items())}, indent=1) + "\n")
    return before, file


def summary(target: str, night: Night, before: dict[tuple[str, str, str], float]) -> str:
    """What the night came to: laws, regimes, ratios beside those of the nights before, failures."""
    laws, ratios = Table(box=SIMPLE_HEAD, pad_edge=False), Table(box=SIMPLE_HEAD, pad_edge=False)
    for heading in ("law", "", "examples", "failures"):
        laws.add_column(heading, justify="left" if heading == "" else "right")
    for law, words in night.words.items():
        if night.examples[law]:
            failed = sum(number == law for number, _ in night.failures)
            laws.add_row(str(law), words, f"{night.examples[law]:,}", str(failed or ""))
    for heading in ("operation", "dtype", "", "error / bound", "record before", ""):
        ratios.add_column(heading, justify="right" if heading in ("error / bound", "record before") else "left")
    for key, ratio in sorted(night.highest.items()):
        record = before.get(key)
        fell = "a new record" if record is not None and ratio > record else ""
        ratios.add_row(*key, f"{ratio:.4f}", "" if record is None else f"{record:.4f}", fell)
    console = Console(file=StringIO(), width=120)
    console.print(f"\n{target}: {night.rounds} rounds, {night.examples.total():,} examples")
    console.print(laws, ratios)
    regimes = ", ".join(f"{name} {count:,}" for name, count in sorted(night.regimes.items()))
    console.print(f"regimes: {regimes}", highlight=False)
    for (law, name), found in sorted(night.failures.items()):
        console.print(f"\nlaw {law}, {name}\n{found['message']}\n{found['reproduce']}", highlight=False, markup=False)
    for words in night.errors:
        console.print(f"error: {words}", markup=False)
    text = console.file.getvalue() if isinstance(console.file, StringIO) else ""
    return text + ("nothing failed" if not night.failures else f"{len(night.failures)} properties failed")


def _round(night: Night, arguments: list[str]) -> None:
    with tempfile.TemporaryDirectory(prefix="mergelaws-") as directory:
        told = Path(directory) / "round.json"
        done = subprocess.run([*arguments, f"--laws-json={told}"], check=False)  # noqa: S603  # this very Python
        if done.returncode not in (0, 1, 5) or not told.is_file():  # 5: nothing was left to run
            raise RuntimeError(f"a round ended with {done.returncode}: {' '.join(arguments)}")
        night.add(json.loads(told.read_text()))
