"""A row that is over its bound as an example: a patch that adds it to the property that it breaks, and a line of Python."""

from __future__ import annotations

import difflib
import hashlib
import time
from pathlib import Path

from mergelaws.regressions import FOUND, PATCHES
from mergelaws.sweep.judging import Finding
from mergelaws.writing import write_whole

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
    """One line of Python that makes the row's states again: v [N] of one column, and s [N]."""
    v, s = _literals(finding.v), _literals(finding.s)
    return f"v, s = torch.tensor([{v}], dtype=torch.{finding.dtype}), torch.tensor([{s}])  # base {finding.base}"


def _literals(numbers: tuple[str, ...]) -> str:
    """Numbers in hex as Python writes them."""
    words = [repr(float.fromhex(number)) for number in numbers]
    written = [{"nan": "math.nan", "inf": "math.inf", "-inf": "-math.inf"}.get(word, word) for word in words]
    return ", ".join(written)
