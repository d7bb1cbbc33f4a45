"""Running a sweep: rows merged and judged, batch after batch, and what is found kept as it is found."""

from __future__ import annotations

import difflib
import hashlib
import itertools
import time
from collections.abc import Callable
from pathlib import Path

from mergelaws.implementation import Implementation
from mergelaws.regressions import FOUND, PATCHES
from mergelaws.sweep import climbing
from mergelaws.sweep.judging import Finding, judge, settle
from mergelaws.sweep.rows import Rows, State
from mergelaws.sweep.sources import Source
from mergelaws.sweep.totals import Checkpoint, Totals, write_whole

Tell = Callable[[Totals], None]

BATCH = {"cuda": 1 << 24, "cpu": 1 << 18}
CHILDREN = {"cuda": 1 << 16, "cpu": 1 << 12}
_NAIVE = 0.5  # seconds of mpmath alone, to know its rate

# The property that asks a row of each operation, and its case.
_PROPERTIES = {
    "merge_state": ("test_two_states_merge_within_the_bound", "{states}"),
    "merge_state_in_place": ("test_two_states_merge_in_place_within_the_bound", "{states}"),
    "merge_states": ("test_many_states_merge_within_the_bound", "{states}"),
    "variable_length_merge_states": (
        "test_segments_merge_within_the_bound",
        "Segments(states={states}, lengths=({count},))",
    ),
}
_SOURCE = Path("properties") / "test_exactness.py"


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
    for number in itertools.count(totals.next):
        slope = slopes[number % len(slopes)]
        verdict = climbing.climb(slope, implementation, climbing.GENERATIONS, children, seed + number, device)
        totals.add(verdict, 1, climbing.GENERATIONS * children * slope.count)
        totals.seconds = before + time.monotonic() - begun
        checkpoint.save(totals, now=bool(verdict.wrong))
        tell(totals)
        if totals.seconds >= seconds:
            return totals
    raise AssertionError("unreachable")


def naive_rate(rows: Rows, out: State, implementation: Implementation) -> float:
    """Rows a second where mpmath judges each."""
    begun = time.monotonic()
    for done in range(len(rows.s)):
        settle(rows, out, done, implementation)
        if time.monotonic() - begun > _NAIVE:
            break
    return (done + 1) / (time.monotonic() - begun)


def leave_patch(finding: Finding, clone: Path) -> Path:
    """A patch, where `mergelaws regressions` looks for it, that makes the row an example of its property."""
    name, case = _PROPERTIES[finding.operation]
    states = (
        f"States(dtype={finding.dtype!r}, base={finding.base!r}, count={len(finding.s)}, s=({_literals(finding.s)}), "
        f"v=({_literals(finding.v)}), garbage='as given')"
    )
    before = (clone / _SOURCE).read_text().splitlines(keepends=True)
    at = next(i for i, line in enumerate(before) if line.startswith(f"def {name}("))
    at = next(i for i in range(at, 0, -1) if before[i].startswith("@given("))
    example = f"@example(case={case.format(states=states, count=len(finding.s))}){FOUND}\n"
    after = [*before[: at + 1], example, *before[at + 1 :]]
    text = "".join(difflib.unified_diff(before, after, f"./{_SOURCE}", f"./{_SOURCE}"))
    file = PATCHES / f"{time.strftime('%Y-%m-%d')}--sweep-{hashlib.sha256(example.encode()).hexdigest()[:8]}.patch"
    write_whole(file, text)
    return file


def python_line(finding: Finding) -> str:
    """One line of Python that merges the row again, with `merge` for what it is asked of."""
    v, s = _literals(finding.v), _literals(finding.s)
    return f"v, s = torch.tensor([{v}], dtype=torch.{finding.dtype}), torch.tensor([{s}])  # base {finding.base}"


def _literals(numbers: tuple[str, ...]) -> str:
    """Numbers in hex as Python writes them."""
    words = [repr(float.fromhex(number)) for number in numbers]
    written = [{"nan": "math.nan", "inf": "math.inf", "-inf": "-math.inf"}.get(word, word) for word in words]
    return ", ".join(written)
