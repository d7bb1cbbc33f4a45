"""Running a sweep: rows merged and judged, batch after batch, and what is found kept as it is found."""

from __future__ import annotations

import time
from collections.abc import Callable

from mergelaws.implementation import Implementation
from mergelaws.sweep import climbing
from mergelaws.sweep.judging import judge, settle
from mergelaws.sweep.rows import Rows, State
from mergelaws.sweep.sources import Source
from mergelaws.sweep.totals import Checkpoint, Totals

Tell = Callable[[Totals], None]

BATCH = {"cuda": 1 << 24, "cpu": 1 << 18}
CHILDREN = {"cuda": 1 << 16, "cpu": 1 << 12}
_NAIVE = 0.5  # seconds of mpmath alone, to know its rate


def sweep(
    source: Source,
    implementation: Implementation,
    device: str,
    seconds: float | None,
    checkpoint: Checkpoint,
    tell: Tell,
) -> Totals:
    """Judges the rows of `source` from where the checkpoint stands, to their end or for so many seconds in all."""
    totals = checkpoint.load()
    begun, before = time.monotonic(), totals.seconds
    while source.total is None or totals.next < source.total:
        count = source.batch or BATCH[device]
        count = count if source.total is None else min(count, source.total - totals.next)
        rows = source.rows(totals.next, count, device)
        alike = device == "cuda" and source.batch is None  # batches of one shape, but for the last
        verdict = judge(rows, rows.merged(implementation), implementation, compiled=alike)
        totals.add(verdict, count, rows.s.numel())
        totals.seconds = before + time.monotonic() - begun
        checkpoint.save(totals, now=bool(verdict.wrong))
        tell(totals)
        if seconds is not None and totals.seconds >= seconds:
            break
    return totals


def climb(
    implementation: Implementation, device: str, seconds: float, seed: int, checkpoint: Checkpoint, tell: Tell
) -> Totals:
    """Climbs all slopes in turn, again and again from other rows, for so many seconds; `next` counts the climbs."""
    totals = checkpoint.load()
    begun, before = time.monotonic(), totals.seconds
    slopes, children = climbing.slopes(implementation), CHILDREN[device]
    while totals.seconds < seconds:
        slope = slopes[totals.next % len(slopes)]
        verdict, generations = climbing.climb(
            slope, implementation, climbing.GENERATIONS, children, seed + totals.next, device
        )
        totals.add(verdict, 1, generations * children * slope.count)
        totals.seconds = before + time.monotonic() - begun
        checkpoint.save(totals, now=bool(verdict.wrong))
        tell(totals)
    return totals


def naive_rate(rows: Rows, out: State, implementation: Implementation) -> float:
    """Rows a second where mpmath judges each."""
    begun = time.monotonic()
    for done in range(len(rows.s)):
        settle(rows, out, done, implementation)
        if time.monotonic() - begun > _NAIVE:
            break
    return (done + 1) / (time.monotonic() - begun)
