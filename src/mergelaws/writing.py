"""Writing a file so that whoever reads it, or is killed, has the old text or the new one."""

from __future__ import annotations

import os
from pathlib import Path


def write_whole(file: Path, text: str) -> None:
    """Writes `text` to `file`, whose directory is made if it is not there. Raises OSError if it cannot."""
    file.parent.mkdir(parents=True, exist_ok=True)
    new = file.with_suffix(f".{os.getpid()}")
    new.write_text(text)
    new.replace(file)
