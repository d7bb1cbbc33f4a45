"""What closes a run: the findings and a row law by law, and the highest error over bound per operation and dtype."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from io import StringIO
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from properties.laws import LAWS
from properties.record import Record

Outcomes = dict[int, Counter[str]]  # law -> passed, failed, known (to fail), skipped


def verdict(outcomes: Counter[str]) -> str:
    """What the outcomes of a law's properties come to."""
    if outcomes["failed"]:
        return "BROKEN"
    if outcomes["known"]:
        return "known failure"
    if outcomes["passed"]:
        return "holds"
    return "not checked"


def law_table(record: Record, outcomes: Outcomes, only: set[int]) -> Table:
    """A row per law: properties, examples, highest error over bound of v and s, verdict. `only`: laws asked for."""
    table = Table(header_style="bold", box=SIMPLE_HEAD, pad_edge=False)
    for heading, justify in (("law", "right"), ("", "left"), ("properties", "right"), ("examples", "right"),
                             ("v: error / bound", "right"), ("s: error / bound", "right"), ("verdict", "left")):  # fmt: skip
        table.add_column(heading, justify=justify, no_wrap=True)  # type: ignore[arg-type]
    for number, words in LAWS.items():
        if number not in outcomes and (only or len(outcomes) < len(LAWS) // 2):
            continue
        told = outcomes.get(number, Counter())
        result = verdict(told)
        colour = {"BROKEN": "[bold red]", "known failure": "[yellow]", "holds": "[green]", "not checked": "[dim]"}[
            result
        ]
        table.add_row(
            str(number), words, str(told["passed"] + told["failed"] + told["known"]), f"{record.examples[number]:,}",
            _worst(record, number, "v"), _worst(record, number, "s"), colour + result,
        )  # fmt: skip
    return table


def ratio_table(record: Record) -> Table:
    """A row per operation and dtype: the highest error over bound of v and of s in the whole run."""
    table = Table(header_style="bold", box=SIMPLE_HEAD, pad_edge=False)
    for heading in ("operation", "dtype of v"):
        table.add_column(heading)
    for heading in ("v: error / bound", "s: error / bound"):
        table.add_column(heading, justify="right")
    rows: dict[tuple[str, str], dict[str, float]] = {}
    for (_, operation, dtype, output), ratio in sorted(record.worst.items()):
        row = rows.setdefault((operation, dtype), {})
        row[output] = max(ratio, row.get(output, 0.0))
    for (operation, dtype), row in rows.items():
        table.add_row(operation, dtype, _shown(row.get("v")), _shown(row.get("s")))
    return table


def findings(found: list[dict[str, Any]]) -> Iterator[tuple[int, str]]:
    """Per broken law, the plainest input that shows it, as a message, a program and the line that draws it again.

    found: findings in the order of the laws, the plainest of each law first. An input is shown once.
    """
    shown: dict[str, int] = {}
    for law in dict.fromkeys(one["law"] for one in found):
        first, *others = (one for one in found if one["law"] == law)
        where = shown.setdefault(first["message"], law)
        again = f"(The input of law {where}.)\n" if where != law else first["python"]
        words = f"{first['property']}\n{first['message']}\n\n{again}"
        if others:
            words += f"\nAlso broken: {', '.join(one['property'] for one in others)}.\n"
        yield law, f"{words}\n{first['reproduce']}\n"


def printed(table: Table, width: int, colour: bool) -> str:
    """The table as text."""
    console = Console(file=StringIO(), width=max(width, 120), force_terminal=colour, no_color=not colour)
    console.print(table)
    file = console.file
    assert isinstance(file, StringIO)
    return file.getvalue()


def _worst(record: Record, law: int, output: str) -> str:
    ratios = [ratio for (number, _, _, which), ratio in record.worst.items() if (number, which) == (law, output)]
    return _shown(max(ratios, default=None))


def _shown(ratio: float | None) -> str:
    return "" if ratio is None else f"{ratio:.4f}" if ratio < 1e4 else f"{ratio:.2e}"
