"""The time limit of a property: one that makes no progress for that long is ended, and the run goes on.

Progress is a new example; a test without Hypothesis is one example. The limit is first enforced by SIGALRM, which
interrupts Python code and sleeping. Code that blocks signals outlives that: in a worker process of pytest-xdist a
watchdog thread then ends the process, and the controller, which starts another one, reads from the note that the process
left which property it was at.
"""

from __future__ import annotations

import contextlib
import faulthandler
import hashlib
import json
import os
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from properties import record

HARDER = 2.5  # the watchdog waits so many limits
LEAST = 5.0  # seconds; each law that hung halves the limit of what follows, down to this


class TimeLimit(BaseException):
    """A property made no progress. Not an Exception: neither Hypothesis nor the target is to catch it and go on."""


class Notes:
    """What the processes of a run leave for each other: the property that each is at, and the laws that hung."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        directory.mkdir(parents=True, exist_ok=True)

    def at(self, nodeid: str, note: dict[str, Any]) -> Path:
        """Leaves word that this process begins with the test `nodeid`."""
        path = self._path(nodeid)
        path.write_text(json.dumps(note))
        return path

    def left_at(self, nodeid: str) -> tuple[dict[str, Any], float]:
        """The note on `nodeid`, ({} if there is none), and the seconds since its process last made progress."""
        path = self._path(nodeid)
        if not path.is_file():
            return {}, 0.0
        return json.loads(path.read_text()), time.time() - path.stat().st_mtime

    def hung(self, law: int, words: str) -> None:
        """Leaves word that a property of `law` did not come back."""
        (self._directory / f"law-{law}").write_text(words)

    def has_hung(self, law: int) -> str:
        """What hung of `law`; "" if nothing did."""
        path = self._directory / f"law-{law}"
        return path.read_text() if path.is_file() else ""

    def hung_laws(self) -> int:
        """How many laws hung so far."""
        return len(list(self._directory.glob("law-*")))

    def _path(self, nodeid: str) -> Path:
        return self._directory / hashlib.sha256(nodeid.encode()).hexdigest()[:24]


def in_force(seconds: float, notes: Notes | None) -> float:
    """The limit that is left of `seconds` after some laws hung; 0 means none."""
    if seconds <= 0.0 or notes is None:
        return seconds
    return max(min(LEAST, seconds), seconds / 2.0 ** notes.hung_laws())


@contextlib.contextmanager
def limited(seconds: float, note: Path | None, watchdog: bool) -> Iterator[None]:
    """Raises TimeLimit within the block after `seconds` without progress, twice that at most; 0 means no limit.

    note: the file whose time tells of progress. watchdog: end the whole process if that does not help.
    """
    if seconds <= 0.0 or threading.current_thread() is not threading.main_thread():
        yield
        return
    seen = -1

    def arm() -> None:
        if note is not None:
            note.touch()
        if watchdog:
            faulthandler.dump_traceback_later(HARDER * seconds, exit=True, file=sink)

    def ring(number: int, frame: object) -> None:
        nonlocal seen
        before, seen = seen, sum(record.current().tests.values())
        if seen == before:
            raise TimeLimit(f"no progress in {seconds:g} s")
        arm()

    with open(os.devnull, "w") as sink:  # noqa: PTH123  # an open file, for faulthandler
        former = signal.signal(signal.SIGALRM, ring)
        arm()
        signal.setitimer(signal.ITIMER_REAL, seconds, seconds)
        try:
            yield
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0.0)
            signal.signal(signal.SIGALRM, former)
            if watchdog:
                faulthandler.cancel_dump_traceback_later()
