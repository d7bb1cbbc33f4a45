"""The conformance table: which laws hold for the implementations that were run, and the least input of each broken one.

    python -m benchmarks.conformance NAME...     runs `mergelaws verify NAME` for each, and writes docs/conformance.md
    python -m benchmarks.conformance             writes the page anew

What a run found is kept in docs/conformance/NAME.json. A report of `mergelaws verify NAME --json` from elsewhere, from a GPU
say, is added by `python -m benchmarks.conformance path/to/NAME.json`.
"""

from __future__ import annotations

import ast
import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import mergelaws  # before Triton  # isort: skip
import implementations
from mergelaws import adapter
from properties import known
from properties.laws import LAWS

ROOT = Path(__file__).resolve().parent.parent
KEPT = ROOT / "docs" / "conformance"
OWN = ("ours", "torch")
WIDEST = 420  # characters of a line of a counterexample

Report = dict[str, Any]
Finding = dict[str, Any]

_INTRODUCTION = """\
# Who keeps the laws

Third-party implementations of merging, held to the laws of docs/semantics.md by `mergelaws verify`. Written by
`python -m benchmarks.conformance`, from docs/conformance/; nothing here was found otherwise than by these runs.

- **holds**: every property of the law that could be asked holds, for what the implementation claims.
- **wrong**: some property fails on an input that the package takes: a number off by more than its bound, NaN where there is
  one, or a CUDA error.
- **differs**: it fails only where the package says nothing of the case, and this project has a policy.
- *blank*: not asked; the operation is not offered, or the case is not claimed.

An error is counted in bounds: the rounding that a merge in float32 may do on those very inputs (docs/numerics.md). An error of
2 bounds is a few units in the last place; an error of inf bounds is NaN or an infinity where there is a number, or the reverse.
A counterexample is the plainest failing input of its law, cut down to a row or a column where the rest does not matter;
its last lines say what should come out and what came out in the run."""


def run(name: str) -> None:
    """Runs the laws on the implementation `name` and keeps the report."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"{name}.json"
        command = [sys.executable, "-m", "mergelaws.cli", "verify", name, "--ignore-known", "--json", str(path)]
        subprocess.run(command, check=False)  # noqa: S603
        if path.is_file():
            keep(path)


def keep(path: Path) -> None:
    """Keeps a report: of each law what failed, and the plainest finding."""
    told = json.loads(path.read_text())
    KEPT.mkdir(exist_ok=True)
    (KEPT / f"{told['target']}.json").write_text(json.dumps(trimmed(told), indent=1) + "\n")


def trimmed(told: Report) -> Report:
    """The report without the lists of properties that hold."""
    reasons = dict(told["differs"])
    found = [{**one, "differs": undocumented(one, reasons)} for one in (*told["broken"], *told["known_failures"])]
    kept = {name: told[name] for name in ("target", "date", "profile", "seed", "device", "versions", "operations")}
    kept |= {"notes": told.get("notes", []), "unfinished": told.get("unfinished", [])}
    kept |= {"not_claimed": told["not_claimed"], "call": called(told["target"], told["device"] != "CPU"), "laws": []}
    for law in told["laws"]:
        own = sorted((one for one in found if one["law"] == law["law"]), key=_plainness)
        verdict = "differs" if own and all(one["differs"] for one in own) else "wrong"
        holds = "" if law["verdict"] == "not checked" else "holds"
        row = {"law": law["law"], "verdict": verdict if own else holds, "examples": law["examples"]}
        if own:
            shown = {name: own[0][name] for name in ("property", "kind", "message", "differs")}
            row["failed"] = sorted({known.base(one["property"]) for one in own})
            row["plainest"] = {**shown, "python": input_of(own[0]["python"])}
        kept["laws"].append(row)
    return kept


def undocumented(found: Finding, reasons: dict[str, str]) -> str:
    """The reason why the package may do so, of those by property; "" where the input has nothing special to be silent about."""
    states = [line for line in found["message"].splitlines() if re.match(r" *input +s =", line)]
    states = states or re.findall(r"^s\w* = .*", input_of(found["python"]), re.MULTILINE)
    special = found["kind"] != "wrong" or "CUDA error" in found["message"]
    special = special or any(re.search(r"\b(inf|nan)\b", line) for line in states)
    return reasons.get(known.base(found["property"]), "") if special else ""


def _plainness(found: Finding) -> tuple[bool, bool, bool, int]:
    program = input_of(found["python"])
    handed_on = re.search(r"^s\w* = .*\bnan\b", program, re.MULTILINE) is not None  # an earlier merge's own NaN
    return bool(found["differs"]), not program or handed_on, "\n# of " in program, len(program)


def called(name: str, on_cuda: bool) -> str:
    """The call that the counterexamples are of, in plain Python."""
    lines = ["from math import inf, nan", "", "import torch", *adapter.adapted(source(name))]
    if on_cuda:
        lines.insert(3, 'torch.set_default_device("cuda")')
    return "\n".join(lines)


def source(name: str) -> str:
    """The adapter's file."""
    return (ROOT / "implementations" / f"{name}.py").read_text()


def input_of(program: str) -> str:
    """The tensors of a counterexample, the call, and what came out, without what comes before and after."""
    lines = program.splitlines()
    begin = next((i for i, line in enumerate(lines) if re.match(r"(v|s)\w* = torch", line)), len(lines))
    end = next((i for i, line in enumerate(lines) if line.startswith("# the same in float64")), len(lines))
    return "\n".join(line for line in lines[begin:end] if line and "set_printoptions" not in line)


def page(told: list[Report]) -> str:
    """The page in Markdown."""
    names = [one["target"] for one in told]
    lines = [_INTRODUCTION, "", "| law | " + " | ".join(names) + " |", "|---|" + "---|" * len(told)]
    for number, words in LAWS.items():
        lines.append(f"| {number} {words} | " + " | ".join(_cell(one, number) for one in told) + " |")
    lines += [
        "",
        "| implementation | package | device | date | holds | wrong | differs |",
        "|---|---|---|---|---|---|---|",
    ]
    for one in told:
        verdicts = [_cell(one, law["law"]) for law in one["laws"]]
        counts = (str(sum(word in cell for cell in verdicts)) for word in ("holds", "wrong", "differs"))
        row = (one["target"], _package(one), one["device"], one["date"].split()[0], *counts)
        lines.append("| " + " | ".join(row) + " |")
    never = [name for name in implementations.known() if name not in (*names, *OWN)]
    lines += ["", f"Without a finished run, and therefore without a verdict: {', '.join(never)}."] if never else []
    for one in told:
        lines += ["", *_section(one)]
    return "\n".join(lines) + "\n"


def _cell(one: Report, number: int) -> str:
    verdict: str = next((row["verdict"] for row in one["laws"] if row["law"] == number), "")
    if verdict == "holds" and number in one["unfinished"]:
        return "holds so far"
    return f"**{verdict}**" if verdict == "wrong" else verdict


def _package(one: Report) -> str:
    ours = ("mergelaws", "python", "torch", "triton", "hypothesis", "mpmath")
    name, version = next(
        ((n, v) for n, v in one["versions"].items() if n not in ours), ("torch", one["versions"]["torch"])
    )
    return f"{name} {version}"


def _section(one: Report) -> list[str]:
    versions = ", ".join(f"{name} {version}" for name, version in one["versions"].items())
    about = (ast.get_docstring(ast.parse(source(one["target"]))) or "").split("\n\n")[0]
    lines = [
        f"## {one['target']}",
        "",
        about,
        "",
        f"Run on {one['date']}, {one['device']}, profile {one['profile']}, seed {one['seed']}; {versions}.",
        *(f"{note}" for note in one["notes"]),
        "",
        "Not claimed, and therefore not checked: " + "; ".join(one["not_claimed"]) + ".",
        "",
    ]
    broken = [row for row in one["laws"] if "plainest" in row]
    if not broken:
        return [*lines, "Every claimed law holds."]
    lines += ["The call:", "", "```python", one["call"], "```", ""]
    shown: dict[str, int] = {}
    for row in broken:
        found = row["plainest"]
        kind = {"raised": "raises", "hung": "does not come back", "crashed": "ends the process"}.get(
            found["kind"], "wrong"
        )
        kind = f"differs: {found['differs']}" if found["differs"] else f"{kind}: {_headline(found)}"
        others = len(row["failed"]) - 1
        more = f" ({others} more of its properties fail{'s' if others == 1 else ''})" if others else ""
        lines += [f"**Law {row['law']}, {LAWS[row['law']]}.** `{found['property']}`{more} {kind}", ""]
        text = found["python"] or "\n".join(f"# {line}" for line in found["message"].splitlines()[1:8])
        text = "\n".join(line if len(line) < WIDEST else f"{line[:WIDEST]} ..." for line in text.splitlines())
        if text in shown:
            lines[-2] += f"; the input of law {shown[text]}"
        elif text:
            lines += ["```python", text, "```", ""]
            shown[text] = row["law"]
    return lines[:-1]


def _headline(found: Finding) -> str:
    words = found["message"].splitlines()[0]
    return re.sub(r", position \d+, head \d+, column \d+", "", words).strip(" :")


def main() -> None:
    """Runs what is named, and writes the page."""
    assert mergelaws.__version__
    for name in sys.argv[1:]:
        if name.endswith(".json"):
            keep(Path(name))
        else:
            run(name)
    told = [json.loads(path.read_text()) for path in sorted(KEPT.glob("*.json"))]
    (ROOT / "docs" / "conformance.md").write_text(page(told))
    print(ROOT / "docs" / "conformance.md")


if __name__ == "__main__":
    main()
