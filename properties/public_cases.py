"""Inputs distilled from public reports about merging, with their right values (public_cases.json)."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from properties.cases import States

_WORDS = {"nan": math.nan, "inf": math.inf, "-inf": -math.inf}


@dataclass(frozen=True)
class PublicCase:
    """One report: its states, the operation, and the exact merge to 20 digits, NaN under the policy of semantics.md."""

    name: str
    source: str
    fault: str
    operation: str
    states: States
    v: str
    s: str


def _number(word: Any) -> float:
    return _WORDS[word] if isinstance(word, str) else float(word)


def _case(entry: dict[str, Any]) -> PublicCase:
    values, lses = zip(*entry["states"], strict=True)
    states = States(
        dtype=entry["dtype"],
        base=entry["lse_base"],
        count=len(lses),
        dim=3,
        s=tuple(_number(word) for word in lses),
        v=tuple(_number(word) for word in values),
        garbage="as given",
    )
    right = entry["right"]
    return PublicCase(
        entry["id"], entry["source"], entry["fault"], entry["operation"], states, str(right["v"]), str(right["s"])
    )


_FILE = json.loads((Path(__file__).parent / "public_cases.json").read_text())

NUMERIC = tuple(_case(entry) for entry in _FILE["numeric"])
STRUCTURAL = tuple(entry["id"] for entry in _FILE["structural"])
