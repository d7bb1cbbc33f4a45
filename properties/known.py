"""Known failures: expected to fail, and policed. One that no longer fails, or names no property, is an error.

A reason that begins with "at times" is of a property whose cases do not meet the fault in every run; it may also pass.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

_HEADS = re.compile(r"^(?:def|class) ([Tt]est\w*)", re.MULTILINE)


def base(name: str) -> str:
    """The property of `test_x[set of parameters]` or `TestX::runTest`."""
    return name.split("[", maxsplit=1)[0].split("::", maxsplit=1)[0]


def reason(name: str, failures: Iterable[tuple[str, str]]) -> str:
    """Why `name` is known to fail; "" if it is not. An entry names a property, or one set of its parameters."""
    return next((why for entry, why in failures if entry in (name, base(name))), "")


def unheard_of(failures: Iterable[tuple[str, str]]) -> list[str]:
    """The entries that name no property."""
    source = "".join(path.read_text() for path in sorted(Path(__file__).parent.glob("test_*.py")))
    properties = set(_HEADS.findall(source))
    return [entry for entry, _ in failures if base(entry) not in properties]


def outlived(failures: Iterable[tuple[str, str]], outcomes: dict[str, str]) -> list[str]:
    """The entries whose properties were asked, and none of them failed. outcomes: by name, "known" where it failed."""
    told = []
    for entry, why in failures:
        asked = [how for name, how in outcomes.items() if entry in (name, base(name)) and how != "skipped"]
        if asked and not why.startswith("at times") and not {"known", "failed"} & set(asked):
            told.append(entry)
    return told
