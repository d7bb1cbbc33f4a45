"""The report of a run as files: JSON, and one HTML page that needs nothing else.

What the report holds is gathered by the suite's conftest.py: plain lists, dicts, strings and numbers.
"""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import jinja2

Report = dict[str, Any]

_TEMPLATE = Path(__file__).with_name("report.html.j2")


def write_json(report: Report, path: Path) -> None:
    """Writes the report; numbers that JSON does not have (inf, nan) as strings."""
    path.write_text(json.dumps(_plain(report), indent=2, allow_nan=False) + "\n")


def write_html(report: Report, path: Path) -> None:
    """Writes the report as a page."""
    path.write_text(html(report), encoding="utf-8")


def html(report: Report) -> str:
    """The page: matrix of laws, plots of the worst error over bound, counterexamples, versions."""
    environment = jinja2.Environment(
        autoescape=True, trim_blocks=True, lstrip_blocks=True, undefined=jinja2.StrictUndefined
    )
    template = environment.from_string(_TEMPLATE.read_text(encoding="utf-8"))
    return template.render(report=report, plots=_plots(report), shown=_shown, counts=_counts(report))


def _counts(report: Report) -> dict[str, int]:
    verdicts = [law["verdict"] for law in report["laws"]]
    return {verdict: verdicts.count(verdict) for verdict in ("holds", "BROKEN", "known failure", "not checked")}


def _shown(ratio: float | None) -> str:
    if ratio is None:
        return ""
    return f"{ratio:.3f}" if ratio < 1e4 else f"{ratio:.1e}"


def _plots(report: Report) -> list[dict[str, Any]]:
    """Per operation, a bar per dtype and output: its length from 0 to the bound at 1, longer ones on a log scale."""
    highest: dict[tuple[str, str, str], float] = {}
    for one in report["worst"]:
        key = one["operation"], one["dtype"], one["output"]
        highest[key] = max(one["ratio"], highest.get(key, 0.0))
    plots: dict[str, list[dict[str, Any]]] = {}
    for (operation, dtype, output), ratio in sorted(highest.items()):
        bar = {"dtype": dtype, "output": output, "ratio": ratio, "length": _length(ratio), "over": not ratio <= 1.0}
        plots.setdefault(operation, []).append(bar)
    return [{"operation": operation, "bars": bars} for operation, bars in plots.items()]


def _length(ratio: float) -> float:
    """The bar in percent: the bound is at 70; what is beyond it grows with the logarithm, 100 from 1e12."""
    if not math.isfinite(ratio):
        return 100.0
    if ratio <= 1.0:
        return 70.0 * ratio
    return min(100.0, 72.0 + 28.0 * math.log10(ratio) / 12.0)


def _plain(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, dict):
        return {str(key): _plain(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(inner) for inner in value]
    return value
