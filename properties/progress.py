"""Progress on long runs: every process notes what it is at, and one thread tells it every ten seconds.

The notes are files in a directory that the controller makes, so it works the same with and without pytest-xdist.
"""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Callable
from pathlib import Path

INTERVAL = 10.0  # seconds between lines, and before the first one

_directory: Path | None = None
_last = 0.0


def note_in(directory: Path | None) -> None:
    """Makes this process leave its notes in `directory`; None stops it."""
    global _directory
    _directory = directory


def note(law: int, test: str, examples: int) -> None:
    """Leaves word of where this process is, once a second at most."""
    global _last
    now = time.monotonic()
    if _directory is None or now - _last < 1.0:
        return
    _last = now
    (_directory / str(os.getpid())).write_text(json.dumps([law, test, examples]))


class Teller(threading.Thread):
    """Tells what all processes are at, while tests run."""

    def __init__(self, directory: Path, tell: Callable[[str], None]) -> None:
        super().__init__(daemon=True)
        self._directory, self._tell = directory, tell
        self._over = threading.Event()
        self._began = time.monotonic()

    def run(self) -> None:
        """Until `stop`, a line every INTERVAL seconds if there is anything new."""
        told = ""
        while not self._over.wait(INTERVAL):
            lines = []
            for path in sorted(self._directory.iterdir()):
                try:
                    law, test, examples = json.loads(path.read_text())
                except ValueError:  # half written
                    continue
                lines.append(f"law {law} {test.removeprefix('test_')} ({examples} examples)")
            text = "; ".join(lines)
            if text and text != told:
                self._tell(f"{time.monotonic() - self._began:.0f} s: {text}")
            told = text

    def stop(self) -> None:
        """Ends the telling."""
        self._over.set()
