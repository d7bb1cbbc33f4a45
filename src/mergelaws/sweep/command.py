"""`mergelaws sweep`: what was asked for as sweeps, run with a progress bar, told, and written to the records."""

from __future__ import annotations

import datetime
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
import torch
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

import implementations
from mergelaws import records as records_of
from mergelaws.implementation import Implementation
from mergelaws.sweep import sweeping
from mergelaws.sweep.code import fingerprint
from mergelaws.sweep.example import leave_patch, python_line
from mergelaws.sweep.rows import Rows
from mergelaws.sweep.sources import Gaps, Pairs, Random, Source
from mergelaws.sweep.totals import Checkpoint, Totals
from properties.database import place as as_name

_SAMPLE = 4096  # rows that mpmath is timed on
_PATCHES = 3  # of the rows over the bound, the first


@dataclass(frozen=True)
class Sweep:
    """One sweep. source: None for a climb. seconds: None if it ends by itself. arguments: all that its rows depend on."""

    title: str
    target: str
    implementation: Implementation
    device: str
    source: Source | None
    seconds: float | None
    seed: int
    arguments: dict[str, Any]


def plan(
    mode: str, target: str, count: int, minutes: float, dtype: str, base: str | None, s_a: float,
    gaps: tuple[float, ...], seed: int,
) -> list[Sweep]:  # fmt: skip
    """The sweeps that a mode stands for. Raises ValueError if the target does not take what they ask."""
    implementation = implementations.find(target)
    device = "cuda" if torch.cuda.is_available() and "cuda" in implementation.devices else "cpu"
    taken = implementation.bases
    wished: int | str = taken[0] if base is None else 2 if base == "2" else "e"
    if mode in ("gaps", "pairs"):
        dtype = "float16" if mode == "pairs" else dtype
        if implementation.merge_state is None:
            raise ValueError(f"{target} does not offer merge_state, which {mode} asks")
        if dtype not in implementation.dtypes:
            raise ValueError(f"dtype is {dtype}; {target} takes {', '.join(implementation.dtypes)}")
        if wished not in taken:
            raise ValueError(f"base is {base}; {target} takes s in base {taken[0]}")
    common = {"mode": mode, "target": target, "device": device, "seed": seed}

    def one(title: str, source: Source | None, seconds: float | None, **more: Any) -> Sweep:
        return Sweep(title, target, implementation, device, source, seconds, seed, common | more)

    if mode == "gaps":
        source = Gaps(implementation, dtype, wished, s_a, count, seed)
        about = {"dtype": dtype, "base": wished, "s_a": s_a, "count": count}
        return [one(f"gaps from s_a = {s_a:g}, {dtype}, base {wished}", source, None, **about)]
    if mode == "pairs":
        return [
            one(f"pairs at gap {gap:g}, base {wished}", Pairs(implementation, wished, gap, count, seed), None,
                gap=gap, base=wished, count=count)
            for gap in gaps
        ]  # fmt: skip
    if mode == "random":
        return [one("random rows", Random(implementation, seed), 60.0 * minutes)]
    return [one("climbs", None, 60.0 * minutes)]


def run(sweeps: list[Sweep], clone: Path, fresh: bool, records: bool) -> int:
    """Runs them in turn, tells what each came to, and returns how many rows are over the bound."""
    over = 0
    for sweep in sweeps:
        name = "-".join(str(value) for value in sweep.arguments.values())
        code = fingerprint(sweep.target, clone, sweep.device)
        checkpoint = Checkpoint(as_name(name), sweep.arguments | {"code": code})
        if fresh:
            checkpoint.clear()
        with Progress(
            TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TextColumn("{task.fields[rate]}"),
            TimeRemainingColumn(),
        ) as progress:  # fmt: skip
            totals, patches = _run(sweep, checkpoint, progress, clone)
        click.echo(told(sweep, totals))
        over += totals.over
        if totals.over:
            for finding in totals.failures[:_PATCHES]:
                click.echo(f"  {finding.operation}: {python_line(finding)}")
            names = ", ".join(sorted({file.name for file in patches}))
            click.echo(f"  patches for `mergelaws regressions`: {names}")
        elif records and sweep.target in implementations.known():
            for record in records_of.add(clone, _as_records(sweep, totals)):
                click.echo(f"  a record falls: {' '.join(record.key[1:])} {record.ratio:.6f}")
        checkpoint.clear()  # what it held is told and kept
    return over


def _run(sweep: Sweep, checkpoint: Checkpoint, progress: Progress, clone: Path) -> tuple[Totals, list[Path]]:
    """The totals, and the patches, which are left as the rows over the bound are found."""
    ends = sweep.source.total if sweep.source is not None and sweep.source.total is not None else sweep.seconds
    begun, kept = checkpoint.load(), list[Path]()
    task = progress.add_task(sweep.title, total=ends, rate="", completed=0)
    if begun.next:
        progress.console.print(f"resumed at {begun.next:,} of {sweep.title}")
    elif checkpoint.file.is_file():
        progress.console.print(f"begun anew, as the code has changed since the run that was killed: {sweep.title}")

    def tell(totals: Totals) -> None:
        at = totals.next if sweep.seconds is None else totals.seconds
        while len(kept) < min(_PATCHES, len(totals.failures)):
            kept.append(leave_patch(totals.failures[len(kept)], clone))
        progress.update(task, completed=at, rate=f"{totals.states / max(totals.seconds, 1e-9):,.0f} states/s")

    if sweep.source is None:
        assert sweep.seconds is not None
        totals = sweeping.climb(sweep.implementation, sweep.device, sweep.seconds, sweep.seed, checkpoint, tell)
    else:
        totals = sweeping.sweep(sweep.source, sweep.implementation, sweep.device, sweep.seconds, checkpoint, tell)
    tell(totals)  # of a run that was killed at its very end there is nothing more to judge
    checkpoint.save(totals, now=True)
    return totals, kept


def told(sweep: Sweep, totals: Totals) -> str:
    """What a sweep came to, and what it would cost to ask mpmath each row."""
    rows = f"{totals.next:,} {'climbs' if sweep.source is None else 'rows'}"
    rate = totals.states / max(totals.seconds, 1e-9)
    lines = [
        f"{sweep.title}, {sweep.target} on {sweep.device}: {rows}, {totals.states:,} states in {totals.seconds:.1f} s",
        f"  {rate:,.0f} states/s, {totals.over:,} rows over the bound",
        f"  {totals.settled:,} rows too near the bound for float64, settled by mpmath",
    ]
    for key in sorted(totals.highest):
        lines.append(f"  {' '.join(key)}: highest error / bound {totals.ratio(key):.6f}")
    if sweep.source is not None:
        sample = _sample(sweep)
        out = sample.merged(sweep.implementation)
        naive = sweeping.naive_rate(sample, out, sweep.implementation) * sample.s.shape[1]
        lines.append(f"  with mpmath for every row: {naive:,.0f} states/s")
    return "\n".join(lines)


def _sample(sweep: Sweep) -> Rows:
    assert sweep.source is not None
    count = sweep.source.batch or min(_SAMPLE, sweep.source.total or _SAMPLE)
    return sweep.source.rows(0, count, sweep.device)


def _as_records(sweep: Sweep, totals: Totals) -> list[records_of.Record]:
    device = torch.cuda.get_device_name() if sweep.device == "cuda" else "CPU"
    found = f"sweep {sweep.arguments['mode']}, {device}, {datetime.datetime.now(datetime.timezone.utc):%Y-%m-%d}"
    return [
        records_of.Record(sweep.implementation.name, *key, totals.ratio(key), one.base, one.v, one.s, found)
        for key, one in totals.highest.items()
    ]
