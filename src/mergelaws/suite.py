"""Where the suite is: beside src/ in a clone, inside the package in an installed wheel."""

from __future__ import annotations

import sys
from pathlib import Path

_HERE = Path(__file__).resolve().parent


def directory() -> Path:
    """The directory with conftest.py, properties/ and implementations/. Raises LookupError if there is none."""
    tried = [_HERE / "suite", _HERE.parents[1]]
    for place in tried:
        if (place / "conftest.py").is_file() and (place / "properties").is_dir():
            return place
    raise LookupError(f"the suite was looked for in {' and '.join(map(str, tried))} and not found")


def enter() -> Path:
    """Makes `implementations` and what is in the current directory importable, as pytest does; the suite's directory."""
    place = directory()
    for path in (str(place), str(Path.cwd())):
        if path not in sys.path:
            sys.path.insert(0, path)
    return place


def pytest_arguments(place: Path, target: str, processes: int, laws: tuple[int, ...]) -> list[str]:
    """What pytest is told for any run of the laws on `target`; `place` is the suite's directory, () means all laws."""
    # "load" and not "loadgroup": that one gives a test that ended its process to the next process again.
    return [
        str(place / "properties"), f"--rootdir={place}", f"--config-file={place / 'pyproject.toml'}",
        "--import-mode=prepend", "-p", "no:cacheprovider", "-p", "no:benchmark", "-W", "ignore", "--tb=no", "-q",
        "--no-header", "-r", "N", "--show-capture=no",
        "-n", str(processes), "--dist", "load", "--max-worker-restart=10000",
        f"--impl={target}", *(f"--law={law}" for law in laws),
    ]  # fmt: skip
