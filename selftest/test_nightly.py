"""`mergelaws nightly`: rounds until the time is up, a summary, and nothing lost when it is killed."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from hypothesis.database import DirectoryBasedExampleDatabase

from mergelaws import nightly, records
from properties import database

ROOT = Path(__file__).resolve().parents[1]
WRONG = "mutants:weights-swapped"


def _start(directory: Path, target: str, minutes: float) -> subprocess.Popen[str]:
    """A night on law 3, in one process, whose group can be killed."""
    environment = {key: value for key, value in os.environ.items() if not key.startswith(("PYTEST_", "COV_"))}
    path = os.pathsep.join([str(ROOT / "src"), environment.pop("PYTHONPATH", "")]).rstrip(os.pathsep)
    environment.pop(database.VARIABLE, None)
    command = [sys.executable, "-m", "mergelaws.cli", "nightly", target, "--minutes", str(minutes), "--law", "3",
               "--processes", "1"]  # fmt: skip
    return subprocess.Popen(  # noqa: S603  # this very Python
        command, cwd=directory, env={**environment, "PYTHONPATH": path}, text=True, start_new_session=True,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )  # fmt: skip


def test_a_night_on_a_right_implementation_ends_in_time_with_a_summary(tmp_path: Path) -> None:
    """Rounds with more and more examples, counted by law and regime; the highest ratios are kept for the next night."""
    began = time.monotonic()
    night = _start(tmp_path, "variants:plain-torch", 0.7)
    told, _ = night.communicate(timeout=200)
    assert night.returncode == 0, told
    assert time.monotonic() - began < 0.7 * 60 + 60
    assert "nothing failed" in told and "round 1: 50 examples" in told and "regimes: s " in told
    highest = json.loads((tmp_path / ".hypothesis" / "records" / "variants-plain-torch.json").read_text())
    assert 0.0 < highest["merge_state float32 s"] <= 1.0


def test_a_night_that_is_killed_loses_nothing_and_the_next_begins_with_it(tmp_path: Path) -> None:
    """kill -9 of all its processes, as soon as something was found."""
    kept = DirectoryBasedExampleDatabase(tmp_path / database.LOCAL / database.place(WRONG))
    night = _start(tmp_path, WRONG, 5.0)
    while night.poll() is None and all(
        key.endswith((b".pareto", b".secondary")) for key in kept.fetch(kept._metakeys_name)
    ):
        time.sleep(0.02)
    os.killpg(night.pid, signal.SIGKILL)
    night.communicate(timeout=60)
    again = _start(tmp_path, WRONG, 0.1)
    told, _ = again.communicate(timeout=200)
    assert again.returncode == 1, told
    replayed = told[: told.index("round 1:")] if "round 1:" in told else told
    assert "1 failed" in replayed and "law 3, test_merging_is_commutative" in told


def test_rounds_are_added_up() -> None:
    """Examples are summed, ratios are the highest, a failure is told once."""
    found = {"law": 3, "property": "test_x", "message": "wrong", "reproduce": "again"}
    report = {
        "laws": [{"law": 3, "words": "commutative", "examples": 50}],
        "regimes": {"s near": 20},
        "worst": [{"operation": "merge_state", "dtype": "float16", "output": "v", "ratio": 0.5}],
        "broken": [found],
        "errors": [],
    }
    night = nightly.Night()
    night.add(report)
    night.add({**report, "worst": [{**report["worst"][0], "ratio": "inf"}]})  # type: ignore[index]
    assert (night.rounds, night.examples[3], night.regimes["s near"]) == (2, 100, 40)
    assert night.highest == {("merge_state", "float16", "v"): float("inf")} and list(night.failures) == [(3, "test_x")]
    words = nightly.summary("target", night, {("merge_state", "float16", "v"): 0.75})
    assert "a new record" in words and "0.7500" in words and "1 properties failed" in words


def test_the_state_machine_is_cut_short_without_a_failure(tmp_path: Path) -> None:
    """The end comes in the middle of its examples; what it has shown until then is right."""
    environment = {key: value for key, value in os.environ.items() if not key.startswith(("PYTEST_", "COV_"))}
    path = os.pathsep.join([str(ROOT / "src"), environment.pop("PYTHONPATH", "")]).rstrip(os.pathsep)
    told = tmp_path / "told.json"
    command = [
        sys.executable, "-m", "pytest", str(ROOT / "properties" / "test_merge_trees.py"), f"--rootdir={ROOT}",
        f"--config-file={ROOT / 'pyproject.toml'}", "-p", "no:cacheprovider", "-W", "ignore", "--impl=variants:plain-torch",
        "--hypothesis-profile=nightly", f"--until={time.time() + 12.0}", f"--laws-json={told}",
    ]  # fmt: skip
    done = subprocess.run(  # noqa: S603  # this very Python
        command, cwd=tmp_path, env={**environment, "PYTHONPATH": path}, text=True, capture_output=True, check=False,
        timeout=200,
    )  # fmt: skip
    assert done.returncode == 0 and "1 passed" in done.stdout, done.stdout + done.stderr
    (law,) = (law for law in json.loads(told.read_text())["laws"] if law["law"] == 2)
    assert 0 < law["examples"] < nightly.LAST_ROUND


def test_a_night_is_told_against_the_records(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those that are published with the suite and those of the nights here, whichever is higher."""
    monkeypatch.chdir(tmp_path)
    key = ("merge_state", "float16", "v")
    published = next(one.ratio for one in records.read(ROOT).values() if one.key == ("ours", *key))
    night = nightly.Night(rounds=1, highest={key: published + 1e-5, ("merge_state", "float16", "s"): 0.25})
    before, file = nightly.records("ours", night)
    assert before[key] == published
    (told,) = (
        line for line in nightly.summary("ours", night, before).splitlines() if "float16" in line and " v " in line
    )
    assert "a new record" in told and f"{published:.4f}" in told
    assert json.loads(file.read_text())["merge_state float16 v"] == published + 1e-5
    lower = nightly.Night(rounds=1, highest={key: 0.5})
    before, _ = nightly.records("ours", lower)
    assert before[key] == published + 1e-5
    assert "a new record" not in nightly.summary("ours", lower, before)
    assert nightly.records("torch", nightly.Night())[0] == {}
