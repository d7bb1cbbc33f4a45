"""The conformance table: which laws hold for the implementations that were really run, and the least input of each broken one.

    python -m benchmarks.conformance NAME...     runs `mergelaws verify NAME` for each, and writes docs/conformance.md
    python -m benchmarks.conformance             writes the page anew

What a run found is kept in docs/conformance/NAME.json, so that a run elsewhere, on a GPU say, can be added by copying its
file (a report of `mergelaws verify NAME --json`) there.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import mergelaws  # before Triton  # isort: skip
import implementations
from properties import known
from properties.laws import LAWS

DOCS = Path(__file__).resolve().parent.parent / "docs"
KEPT = DOCS / "conformance"
MARKS = {"holds": "holds", "BROKEN": "**broken**", "known failure": "**broken**", "not checked": ""}

Report = dict[str, Any]


def run(name: str) -> None:
    """Runs the laws on the implementation `name` and keeps the report."""
    KEPT.mkdir(exist_ok=True)
    path = KEPT / f"{name}.json"
    path.unlink(missing_ok=True)
    subprocess.run([sys.executable, "-m", "mergelaws.cli", "verify", name, "--json", str(path)], check=False)  # noqa: S603
    if path.is_file():
        path.write_text(json.dumps(trimmed(json.loads(path.read_text())), indent=1) + "\n")


def trimmed(told: Report) -> Report:
    """The report without the list of properties, and of the findings one for each law."""
    for law in told["laws"]:
        law.pop("properties", None)
    for kind in ("broken", "known_failures"):
        first: dict[int, Report] = {}
        for found in sorted(told[kind], key=lambda one: not one["python"]):
            first.setdefault(found["law"], found)
        told[kind] = [first[law] for law in sorted(first)]
    return told


def reports() -> list[Report]:
    """What was kept, by name."""
    return [json.loads(path.read_text()) for path in sorted(KEPT.glob("*.json"))]


def page(told: list[Report]) -> str:
    """The page in Markdown."""
    never = [name for name in implementations.known() if name not in {one["target"] for one in told}]
    lines = [
        "# Who keeps the laws",
        "",
        "Written by `python -m benchmarks.conformance` from runs of `mergelaws verify`; the laws are those of docs/semantics.md.",
        "An empty cell was not checked: the operations that it needs are not offered, or the claim is not made.",
        "",
        "| law | " + " | ".join(one["target"] for one in told) + " |",
        "|---|" + "---|" * len(told),
    ]
    for law, words in LAWS.items():
        cells = [next((MARKS[row["verdict"]] for row in one["laws"] if row["law"] == law), "") for one in told]
        lines.append(f"| {law} {words} | " + " | ".join(cells) + " |")
    if never:
        lines += ["", f"Not run, and therefore without a verdict: {', '.join(never)}."]
    for one in told:
        lines += ["", *_section(one)]
    return "\n".join(lines) + "\n"


def _section(one: Report) -> list[str]:
    versions = ", ".join(f"{name} {version}" for name, version in one["versions"].items())
    lines = [
        f"## {one['target']}",
        "",
        f"{one['date']}, {one['device']}, profile {one['profile']}, seed {one['seed']}; {versions}.",
        "",
    ]
    lines += ["Not claimed, and not checked: " + "; ".join(one["not_claimed"]) + ".", ""] if one["not_claimed"] else []
    differs = dict(one.get("differs", []))
    first: dict[int, Report] = {}
    for found in [*one["broken"], *one["known_failures"]]:
        first.setdefault(found["law"], found)
    for law, found in sorted(first.items()):
        why = differs.get(known.base(found["property"]))
        kind = f"differs from the policy of this project: {why}" if why else found["message"].splitlines()[0]
        lines += [f"Law {law}, {LAWS[law]}. `{found['property']}`: {kind}", ""]
        if found["python"]:
            lines += ["```python", found["python"].rstrip(), "```", ""]
    return lines if first else [*lines, "Every claimed law holds."]


def main() -> None:
    """Runs what is named, and writes the page."""
    assert mergelaws.__version__
    for name in sys.argv[1:]:
        run(name)
    (DOCS / "conformance.md").write_text(page(reports()))
    print(DOCS / "conformance.md")


if __name__ == "__main__":
    main()
