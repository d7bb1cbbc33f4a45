"""Sweeps: the rows are the ones that they say, faults are found and kept, a killed one resumes, records fall."""

from __future__ import annotations

import json
import math
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest
import torch

import implementations
import mergelaws
from implementations.torch_reference import TorchMerge, offered
from mergelaws import records, regressions
from mergelaws.records import Record
from mergelaws.sweep import climbing, command, sweeping
from mergelaws.sweep.code import fingerprint
from mergelaws.sweep.example import leave_patch
from mergelaws.sweep.judging import judge, ratios_of, settle
from mergelaws.sweep.rows import Rows
from mergelaws.sweep.sources import ALL, Gaps, Pairs, Random, Source, spread
from mergelaws.sweep.totals import Checkpoint, Totals
from oracles.bounds import local
from oracles.screen import GUARD
from properties import database, subject
from properties.claimed import arithmetic_of
from selftest.planted_gap import implementation as planted

ROOT = Path(__file__).resolve().parents[1]
OURS, TORCH = implementations.find("ours"), implementations.find("torch")
DEVICE = mergelaws.backend.DEVICE_TYPE
PLANTED = f"{ROOT / 'selftest' / 'planted_gap.py'}:implementation"


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Checkpoints and patches are written in the current directory."""
    monkeypatch.chdir(tmp_path)


def _swept(source: Source, name: str = "test", seconds: float | None = None, target: str = "torch") -> Totals:
    implementation = planted if target == "planted" else implementations.find(target)
    device = DEVICE if DEVICE in implementation.devices else "cpu"
    return sweeping.sweep(source, implementation, device, seconds, Checkpoint(name, {}), lambda totals: None)


def test_all_patterns_are_asked_once() -> None:
    """All 2^32 in order, or one of each stretch; the first and the last of the bits are those of the numbers."""
    assert spread(ALL - 3, 3, ALL, 1, "cpu").tolist() == [ALL - 3, ALL - 2, ALL - 1]
    some = spread(0, 1024, 1024, 5, "cpu")
    assert (some // (ALL // 1024)).tolist() == list(range(1024))
    assert not torch.equal(some, spread(0, 1024, 1024, 6, "cpu"))
    assert torch.equal(some[300:], spread(300, 724, 1024, 5, "cpu"))
    rows = Gaps(TORCH, "float16", 2, 0.5, ALL, 0).rows(0x3F800000, 2, "cpu")
    assert rows.s.tolist() == [[0.5, 1.0], [0.5, 1.0 + 2.0**-23]]
    rows = Gaps(TORCH, "float16", 2, 0.5, ALL, 0).rows(0xFF800000, 2, "cpu")
    assert rows.s[0, 1] == -math.inf and math.isnan(rows.s[1, 1])
    rows = Pairs(TORCH, 2, -1.5, ALL, 0).rows(0x3C00C000, 1, "cpu")
    assert rows.v[0, :, 0].tolist() == [1.0, -2.0] and rows.s.tolist() == [[0.0, -1.5]]


@pytest.mark.parametrize("target", ["ours", "torch"])
def test_right_implementations_stay_within_the_bound(target: str) -> None:
    """Gaps and pairs of every class, NaN, inf and subnormals among them; random rows of every operation."""
    implementation = implementations.find(target)
    for source in (
        Gaps(implementation, "float32", 2, 0.0, 2**14, 1),
        Gaps(implementation, "bfloat16", "e", -3.5, 2**14, 2),
        Pairs(implementation, 2, -1.5, 2**14, 3),
    ):
        totals = _swept(source, target=target)
        assert (totals.over, totals.next) == (0, 2**14)
        assert 0.2 < max(totals.ratio(key) for key in totals.highest) <= 1.0
    random = _swept(Random(implementation, 4, batch=256), seconds=1.5, target=target)
    assert random.over == 0 and random.next % 256 == 0


@pytest.mark.parametrize(
    ("name", "is_found"), [("exp-for-exp2", True), ("weights-swapped", True), ("mask-ignored", False)]
)
def test_wrong_implementations_are_found(name: str, is_found: bool) -> None:
    """What merges two states wrong leaves rows over the bound; a fault of another operation leaves none."""
    totals = _swept(Gaps(TORCH, "float16", 2, 0.0, 2**12, 1), target=f"mutants:{name}")
    assert (totals.over > 0) == is_found
    assert len(totals.failures) == min(totals.over, 8)
    for finding in totals.failures:
        assert finding.ratio > 1.0 and len(finding.s) == 2


def test_judging_in_bulk_is_judging_one_by_one() -> None:
    """The screen's ratios are mpmath's; rows beside the bound are settled by it."""
    rows = Random(TORCH, 7, batch=64)
    for first in range(0, 64 * 12, 64):
        batch = rows.rows(first, 64, "cpu")
        out = batch.merged(TORCH)
        of_v, of_s = ratios_of(batch, out, TORCH)
        for row in range(0, 64, 16):
            finding = settle(batch, out, row, TORCH)
            assert finding.v_ratio == pytest.approx(float(of_v[row]), rel=1e-7, abs=1e-7)
            assert finding.s_ratio == pytest.approx(float(of_s[row]), rel=1e-7, abs=1e-7)
    one = Rows("merge_state", 2, torch.tensor([[[1.0], [0.0]]]), torch.zeros(1, 2))
    bound = float(local([[1.0], [0.0]], [0.0, 0.0], "float32", arithmetic_of(TORCH, 2)).v[0])
    for off, over, settled in ((0.9, 0, 0), (1.0 - 2.0**-26, 0, 1), (1.0 + 2.0**-26, 1, 1), (1.1, 1, 0)):
        out = torch.full((1, 1), 0.5 + off * bound, dtype=torch.float64), torch.ones(1)
        verdict = judge(one, out, TORCH)
        assert (verdict.over, verdict.settled, len(verdict.wrong)) == (over, settled, over)


def test_a_row_is_counted_once() -> None:
    """One whose s is wrong and whose v is just at the bound."""
    one = Rows("merge_state", 2, torch.tensor([[[1.0], [0.0]]]), torch.zeros(1, 2))
    bound = float(local([[1.0], [0.0]], [0.0, 0.0], "float32", arithmetic_of(TORCH, 2)).v[0])
    edge = torch.full((1, 1), 0.5 + (1.0 + 2.0**-26) * bound, dtype=torch.float64)
    verdict = judge(one, (edge, torch.full((1,), 7.0)), TORCH)
    assert (verdict.over, verdict.settled, len(verdict.wrong)) == (1, 0, 1)


def test_what_is_not_claimed_of_nan_is_not_told() -> None:
    """Rows with s = NaN, of an implementation that says "any", neither count nor stand as the highest."""
    rows = Rows("merge_state", 2, torch.zeros(2, 2, 1), torch.tensor([[0.0, math.nan], [0.0, math.nan]]))
    out = torch.zeros(2, 1), torch.zeros(2)
    assert judge(rows, out, TORCH).over == 2
    verdict = judge(rows, out, replace(TORCH, nan_lse="any"))
    assert verdict.over == 0 and verdict.highest["v"].ratio == 0.0


def test_climbing_gets_higher() -> None:
    """Than the generation that it began with."""
    slope = climbing.Slope("merge_state", "float32", 2, 2, "v")
    first = climbing.climb(slope, TORCH, 1, 512, 3, "cpu")[0].highest["v"].v_ratio
    last = climbing.climb(slope, TORCH, 15, 512, 3, "cpu")[0].highest["v"].v_ratio
    assert first < last <= 1.0
    assert {slope.operation for slope in climbing.slopes(TORCH)} == set(TORCH.operations)


def test_what_is_found_on_the_way_up_is_told() -> None:
    """A climb of v, on a target whose s was wrong in one generation only."""

    class Once(TorchMerge):
        calls = 0

        def merge_state(
            self, v_a: torch.Tensor, s_a: torch.Tensor, v_b: torch.Tensor, s_b: torch.Tensor, lse_base: int | str = 2
        ) -> tuple[torch.Tensor, torch.Tensor]:
            v, s = super().merge_state(v_a, s_a, v_b, s_b, lse_base)
            self.calls += 1
            return v, s + 1.0 if self.calls == 2 else s

    slope = climbing.Slope("merge_state", "float32", 2, 2, "v")
    verdict, generations = climbing.climb(slope, offered("once", Once()), 6, 256, 3, "cpu")
    assert verdict.over > 0 and generations == 2


@pytest.mark.skipif(DEVICE == "cpu" and shutil.which("g++") is None, reason="needs g++, to compile for a CPU")
@pytest.mark.filterwarnings("ignore:.torch.jit:DeprecationWarning")  # in inductor itself
def test_the_compiled_screen_is_the_screen() -> None:
    """Results around the bound, compiled as a sweep does it on a GPU: the ratios stay far closer than the guard."""
    rows = Gaps(TORCH, "float16", 2, 0.0, 2**12, 1).rows(0, 2**12, DEVICE)
    v, s = (out.double() for out in rows.merged(TORCH))
    off = torch.linspace(-1.0, 1.0, len(s), dtype=torch.float64, device=DEVICE)
    out = v + off[:, None] * 2.0**-10 * v.abs(), s + off * 2.0**-20 * (1.0 + s.abs())
    plain, compiled = ratios_of(rows, out, TORCH), ratios_of(rows, out, TORCH, compiled=True)
    for one, other in zip(plain, compiled, strict=True):
        assert torch.equal(one.isinf(), other.isinf()) and not other.isnan().any()
        finite = one.isfinite()
        one, other = one[finite], other[finite]  # noqa: PLW2901
        assert (one < 0.99).any() and (one > 1.01).any()
        assert float(((one - other).abs() / one.clamp(min=1.0)).max()) < GUARD * 2.0**-6


def _run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(  # noqa: S603  # this very Python
        [sys.executable, "-m", "mergelaws.cli", "sweep", *arguments], capture_output=True, text=True, check=False,
        env=_environment(), timeout=120,
    )  # fmt: skip


def _environment() -> dict[str, str]:
    path = os.pathsep.join([str(ROOT / "src"), str(ROOT), os.environ.get("PYTHONPATH", "")]).rstrip(os.pathsep)
    one = {"OMP_NUM_THREADS": "1"}  # two threads wait for each other on a busy machine
    return {**os.environ, "PYTHONPATH": path, **one}


def test_a_killed_sweep_is_resumed_and_loses_nothing() -> None:
    """kill -9 in the middle; the same command goes on from there and comes to what an unbroken run comes to."""
    arguments = "gaps", PLANTED, "--count", "2^22"
    command = [sys.executable, "-m", "mergelaws.cli", "sweep", *arguments]
    child = subprocess.Popen(command, env=_environment(), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)  # noqa: S603
    folder, end = Path(".hypothesis") / "sweeps", time.monotonic() + 60.0
    while not list(folder.glob("*.json")):
        assert child.poll() is None and time.monotonic() < end, "the sweep ended before it could be killed"
        time.sleep(0.05)
    child.send_signal(signal.SIGKILL)
    child.wait()
    (file,) = folder.glob("*.json")
    stood = json.loads(file.read_text())["next"]
    assert 0 < stood < 2**22
    resumed = _run(*arguments)
    assert resumed.returncode == 1 and "resumed at" in resumed.stdout, resumed.stdout + resumed.stderr
    whole = _swept(Gaps(planted, "float16", 2, 0.0, 2**22, 0), target="planted")
    assert f"{whole.over:,} rows over the bound" in resumed.stdout
    for key in whole.highest:
        assert f"{' '.join(key)}: highest error / bound {whole.ratio(key):.6f}" in resumed.stdout
    assert not file.exists()
    assert len(regressions.found()) == min(3, whole.over)


def test_a_sweep_of_other_code_begins_anew() -> None:
    """What was judged before the target was edited was not judged of this one; a patch that it left stays."""
    Path("edited.py").write_text(EDITED)
    target, options = "edited.py:implementation", ("--count", "2^10", "--no-records")
    (sweep,) = command.plan("gaps", target, 2**10, 1.0, "float16", None, 0.0, (), 0)
    before = Totals(sweep.arguments | {"code": fingerprint(target, ROOT, "cpu")}, next=2**9, states=2**10)
    checkpoint = Checkpoint(
        database.place("-".join(str(value) for value in sweep.arguments.values())), before.arguments
    )
    checkpoint.save(before, now=True)
    assert "resumed at 512" in _run("gaps", target, *options).stdout
    checkpoint.save(before, now=True)
    Path("edited.py").write_text(EDITED + "# edited\n")
    again = _run("gaps", target, *options).stdout
    assert "begun anew" in again and "1,024 rows, 2,048 states" in again


def test_patches_are_left_as_rows_are_found() -> None:
    """Before the sweep ends: one that is killed and not resumed leaves them too."""
    command_line = [sys.executable, "-m", "mergelaws.cli", "sweep", "gaps", PLANTED]  # all 2^32: an hour on two cores
    child = subprocess.Popen(command_line, env=_environment(), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)  # noqa: S603
    end = time.monotonic() + 60.0
    try:
        while not regressions.found():
            assert child.poll() is None and time.monotonic() < end, "no patch was left"
            time.sleep(0.05)
    finally:
        child.send_signal(signal.SIGKILL)
        child.wait()


def test_a_failure_becomes_a_regression(tmp_path: Path) -> None:
    """The patch that a sweep leaves is applied and checked as any other: it fails on the planted fault and not on ours."""
    clone = tmp_path / "clone"
    for part in ("conftest.py", "pyproject.toml", "implementations", "oracles", "properties", "src"):
        copy = shutil.copytree if (ROOT / part).is_dir() else shutil.copy
        clone.mkdir(exist_ok=True)
        copy(ROOT / part, clone / part)
    totals = _swept(Gaps(planted, "float16", 2, 0.0, 2**21, 0), target="planted")
    assert totals.over > 0
    leave_patch(totals.failures[0], clone)
    (patch,) = regressions.found()
    regressions.apply(patch, clone, "one gap of 2^20", "https://example.org/2")
    name = "test_two_states_merge_within_the_bound"
    assert (name, "one gap of 2^20, https://example.org/2") in regressions.kept(clone)
    assert regressions.fails(clone, name, PLANTED)[0]
    assert not regressions.fails(clone, name, "torch")[0]


def test_records_only_rise(tmp_path: Path) -> None:
    """A higher ratio takes the place of the record; a lower one, none at all, or one above 1 does not."""
    (tmp_path / "docs").mkdir()
    low = Record("ours", "merge_state", "float16", "v", 0.5, 2, ("0x1p+0", "0x0p+0"), ("0x0p+0", "0x0p+0"), "a test")
    high, wrong, nothing = replace(low, ratio=0.75), replace(low, ratio=1.5), replace(low, ratio=0.0)
    assert records.add(tmp_path, [low]) == [low]
    assert records.add(tmp_path, [high, wrong, nothing]) == [high]
    assert records.add(tmp_path, [low]) == []
    assert records.read(tmp_path) == {high.key: high}
    assert "| ours | merge_state | float16 | v | 0.750000 | 2 | 2 |" in (tmp_path / "docs" / "records.md").read_text()


def test_the_page_is_that_of_the_records() -> None:
    known = records.read(ROOT)
    assert known
    assert (ROOT / "docs" / "records.md").read_text() == records.page([known[key] for key in sorted(known)])
    assert all(0.0 < record.ratio <= 1.0 for record in known.values())


EDITED = """
from implementations.torch_reference import TorchMerge, offered
implementation = offered("edited", TorchMerge())
"""

NARROW = """
from implementations.torch_reference import TorchMerge, offered
implementation = offered("narrow", TorchMerge(), lse_base="e", dtypes=("float32",), merge_state_in_place=None)
without = offered("without", TorchMerge(), merge_state=None)
"""


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("gaps", "torch", "--count", "0"), r"'0' is no count; it must be a power of two from 1 to 2\^32"),
        (("gaps", "narrow.py:implementation"), "dtype is float16; narrow.py:implementation takes float32"),
        (("gaps", "narrow.py:implementation", "--dtype", "float32", "--base", "2"), "base is 2; .* takes s in base e"),
        (("pairs", "narrow.py:without"), "narrow.py:without does not offer merge_state, which pairs asks"),
        (("sideways",), "'sideways' is not one of"),
    ],
)
def test_what_cannot_be_swept_is_refused(arguments: tuple[str, ...], says: str) -> None:
    Path("narrow.py").write_text(NARROW)
    done = _run(*arguments)
    assert done.returncode == 2 and re.search(says, done.stderr), done.stdout + done.stderr


def test_the_subject_is_left_alone() -> None:
    """A sweep asks its own target, whatever the properties judge."""
    with subject.using(TORCH):
        _swept(Gaps(OURS, "float16", 2, 0.0, 2**10, 1), target="ours")
        assert subject.current() is TORCH
