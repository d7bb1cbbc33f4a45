"""From a red run to an example that stays: found, applied with its reason, checked on the broken and on the fixed kernel."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from mergelaws import regressions

ROOT = Path(__file__).resolve().parents[1]
PARTS = ("conftest.py", "pyproject.toml", "implementations", "oracles", "properties", "src")
WRONG = "mutants:weights-swapped"
PROPERTY = "test_merging_is_commutative"

PATCH = """\
From HEAD Mon Sep 17 00:00:00 2001
From: Hypothesis 6.170.17 <no-reply@hypothesis.works>
Subject: [PATCH] Hypothesis: add explicit examples

---
--- ./somewhere/properties/test_algebra.py
+++ ./somewhere/properties/test_algebra.py
"""


@pytest.fixture(scope="module")
def clone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the suite, to be changed."""
    place = tmp_path_factory.mktemp("clone")
    for part in PARTS:
        source = ROOT / part
        if source.is_dir():
            shutil.copytree(source, place / part, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(source, place / part)
    return place


def _run(clone: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {
        key: value for key, value in os.environ.items() if not key.startswith(("PYTEST_", "COV_", "MERGELAWS_"))
    }
    path = os.pathsep.join([str(clone / "src"), environment.pop("PYTHONPATH", "")]).rstrip(os.pathsep)
    return subprocess.run(  # noqa: S603  # this very Python
        [sys.executable, "-m", *arguments], cwd=clone, env={**environment, "PYTHONPATH": path}, text=True,
        capture_output=True, check=False, timeout=300,
    )  # fmt: skip


def test_a_failure_becomes_a_regression_in_three_commands(clone: Path) -> None:
    """A run that fails leaves a patch; it is applied with its reason; it fails on the broken kernel and not on ours."""
    red = _run(
        clone, "pytest", f"properties/test_algebra.py::{PROPERTY}", "--impl", WRONG, "-q", "-p", "no:cacheprovider"
    )
    assert red.returncode == 1, red.stdout
    listed = _run(clone, "mergelaws.cli", "regressions")
    assert f"{PROPERTY}: example(case=States(" in listed.stdout, listed.stdout + listed.stderr
    words = ("--reason", 'the weights were "swapped"', "--link", "https://example.org/1")
    applied = _run(clone, "mergelaws.cli", "regressions", "--apply", "1", *words)
    assert applied.returncode == 0 and f"kept: {PROPERTY} in test_algebra.py" in applied.stdout, applied.stderr
    assert (PROPERTY, 'the weights were "swapped", https://example.org/1') in regressions.kept(clone)
    checked = _run(clone, "mergelaws.cli", "regressions", "--check", PROPERTY, "--broken", WRONG)
    assert checked.returncode == 0, checked.stdout + checked.stderr
    assert f"{PROPERTY} fails on {WRONG}, and passes on ours" in checked.stdout
    vain = _run(clone, "mergelaws.cli", "regressions", "--check", PROPERTY, "--broken", "torch")
    assert vain.returncode == 1 and "passes on torch" in vain.stdout, vain.stdout + vain.stderr


def test_what_does_not_fit_or_lacks_a_reason_changes_nothing(clone: Path, tmp_path: Path) -> None:
    """And says why."""
    before = (clone / "properties" / "test_algebra.py").read_text()
    file = tmp_path / "old.patch"
    file.write_text(
        PATCH + '@@ -1,2 +1,3 @@\n nowhere\n+@example(x=1).via("discovered failure")\n def test_x() -> None:\n'
    )
    (patch,) = regressions.found(tmp_path)
    assert (
        patch.properties == ["test_x"] and patch.examples == ["example(x=1)"] and patch.sources == ["test_algebra.py"]
    )
    with pytest.raises(ValueError, match="reason is ' '; it must say why"):
        regressions.apply(patch, clone, " ", "link")
    with pytest.raises(ValueError, match="does not fit the properties"):
        regressions.apply(patch, clone, "reason", "link")
    assert (clone / "properties" / "test_algebra.py").read_text() == before
    with pytest.raises(LookupError, match="there is no property 'test_nothing'"):
        regressions.fails(clone, "test_nothing", "ours")


def test_imports_that_an_example_needs_are_added() -> None:
    """Once, and only those."""
    source = "from hypothesis import given\n\n\n@given()\n@example(x=Problem(s=math.inf))\ndef test_x() -> None: ...\n"
    told = regressions._with_imports(source)
    assert "from hypothesis import example, given" in told and "import math" in told
    assert "from properties.cases import Problem" in told and "States" not in told
    assert regressions._with_imports(told) == told
