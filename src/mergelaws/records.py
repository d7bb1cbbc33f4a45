"""Records: the highest error over bound known, by implementation, operation, dtype and output, and the row that has it.

They stand in properties/records.json, from which docs/records.md is made and whose rows every implementation is asked by
a property of law 1.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path

from mergelaws.writing import write_whole

FILE, PAGE = Path("properties") / "records.json", Path("docs") / "records.md"
_SHOWN = 3  # states of a row on the page

Key = tuple[str, str, str, str]


@dataclass(frozen=True)
class Record:
    """v and s: N states of one column, in hex. output: "v" or "s", whose error is `ratio` times its bound."""

    implementation: str
    operation: str
    dtype: str
    output: str
    ratio: float
    base: int | str
    v: tuple[str, ...]
    s: tuple[str, ...]
    found: str

    @property
    def key(self) -> Key:
        """What there is one record of."""
        return self.implementation, self.operation, self.dtype, self.output


def read(place: Path) -> dict[Key, Record]:
    """The records of the suite in `place`; none if it keeps none."""
    file = place / FILE
    told = json.loads(file.read_text()) if file.is_file() else []
    records = (Record(**{**one, "v": tuple(one["v"]), "s": tuple(one["s"])}) for one in told)
    return {record.key: record for record in records}


def add(place: Path, found: Iterable[Record]) -> list[Record]:
    """Writes those of `found` that are higher than what is known, and the page; returns them. Ratios over 1 are no records."""
    known = read(place)
    fallen = []
    for record in found:
        before = known.get(record.key)
        if 0.0 < record.ratio <= 1.0 and (before is None or record.ratio > before.ratio):
            known[record.key] = record
            fallen.append(record)
    if fallen:
        ordered = [known[key] for key in sorted(known)]
        write_whole(place / FILE, json.dumps([asdict(record) for record in ordered], indent=1) + "\n")
        if (place / PAGE.parent).is_dir():
            write_whole(place / PAGE, page(ordered))
    return fallen


def page(records: Iterable[Record]) -> str:
    """docs/records.md."""
    lines = [
        "# Records",
        "",
        "The rows that came closest to their bounds, as `mergelaws sweep` found them; it writes this page and",
        "`properties/records.json`, where they stand whole. Each is asked of every implementation by",
        "`properties/test_records.py`. An error over bound above 1 is no record but a failure.",
        "",
        "| implementation | operation | dtype | output | error / bound | base | N | s | v | found by |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    for one in records:
        cells = (
            one.implementation, one.operation, one.dtype, one.output, f"{one.ratio:.6f}", str(one.base),
            str(len(one.s)), _shown(one.s), _shown(one.v), one.found,
        )  # fmt: skip
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def _shown(numbers: tuple[str, ...]) -> str:
    return "<br>".join(f"`{number}`" for number in numbers[:_SHOWN]) + (", ..." if len(numbers) > _SHOWN else "")
