"""`mergelaws verify` and `mergelaws list`, as a user has them: small targets in a directory of their own."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from mergelaws import report
from properties import known
from properties.laws import LAWS

ROOT = Path(__file__).resolve().parents[1]
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")

TARGETS = """
import os
import time
import torch
from mergelaws import Implementation

def right(v_a, s_a, v_b, s_b):
    print("noise")
    v, s = torch.stack([v_a, v_b], 1).double(), torch.stack([s_a, s_b], 1).double()
    top = s.amax(1, keepdim=True).nan_to_num(neginf=0.0)
    w = torch.exp2(s - top)
    v = torch.where(w[..., None] == 0.0, 0.0, w[..., None] * v).sum(1) / w.sum(1)[..., None]
    v = torch.where(torch.isneginf(s).all(1)[..., None], 0.0, v)
    return v.to(v_a.dtype), (top[:, 0] + w.sum(1).log2()).float()

def wrong(v_a, s_a, v_b, s_b):
    v, s = right(v_a, s_a, v_b, s_b)
    return v, s + 1.0

def refuses(v_a, s_a, v_b, s_b):
    raise RuntimeError("not here")

def hangs(v_a, s_a, v_b, s_b):
    if len(v_a) > 1:
        time.sleep(600)
    return right(v_a, s_a, v_b, s_b)

def crashes(v_a, s_a, v_b, s_b):
    if len(v_a) > 1:
        os._exit(3)
    return right(v_a, s_a, v_b, s_b)

outlived = Implementation("outlived", merge_state=right, known_failures=(("test_merging_is_commutative", "it was"),))
expected = Implementation("expected", merge_state=wrong, known_failures=(("test_merging_is_commutative", "s + 1"),))
"""


@pytest.fixture
def elsewhere(tmp_path: Path) -> Path:
    """An empty directory with a file of targets."""
    (tmp_path / "targets.py").write_text(TARGETS)
    return tmp_path


def _run(directory: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    path = os.pathsep.join([str(ROOT / "src"), os.environ.get("PYTHONPATH", "")]).rstrip(os.pathsep)
    # Of the pytest that this test runs under, nothing is to be handed on.
    environment = {key: value for key, value in os.environ.items() if not key.startswith(("PYTEST_", "COV_"))}
    return subprocess.run(  # noqa: S603  # this very Python
        [sys.executable, "-m", "mergelaws.cli", *arguments],
        cwd=directory, env={**environment, "PYTHONPATH": path}, capture_output=True, text=True, timeout=600, check=False,
    )  # fmt: skip


def _verify(directory: Path, target: str, *options: str) -> subprocess.CompletedProcess[str]:
    return _run(directory, "verify", target, "--processes", "1", *options)


def test_a_right_target_ends_with_0_and_is_reported(elsewhere: Path) -> None:
    """JSON and HTML are written where the user is, and say what was run, found and not claimed."""
    options = ("--law", "3", "--seed", "5", "--json", "told.json", "--html", "told.html")
    done = _verify(elsewhere, "targets.py:right", *options)
    assert done.returncode == 0, done.stdout + done.stderr
    told = json.loads((elsewhere / "told.json").read_text())
    laws = {law["law"]: law for law in told["laws"]}
    assert told["target"] == "targets.py:right" and told["seed"] == "5" and set(laws) == set(LAWS)
    assert laws[3]["verdict"] == "holds" and laws[3]["examples"] >= 50 and laws[4]["verdict"] == "not checked"
    assert 0.0 < laws[3]["worst"]["v"] <= 1.0
    absent = "merge_state_in_place, merge_states and variable_length_merge_states are not offered"
    assert absent in told["not_claimed"] and not told["broken"]
    assert {"torch", "triton", "hypothesis", "mpmath", "python", "mergelaws"} <= told["versions"].keys()
    page = (elsewhere / "told.html").read_text()
    assert not re.search(r"(src|href)\s*=|url\(|@import|<script|<link", page), "the page asks for something else"
    assert "<svg" in page and all(words in page for words in LAWS.values())
    assert (elsewhere / ".hypothesis").is_dir()


def test_the_kernel_of_the_readme_breaks_what_the_readme_says(elsewhere: Path) -> None:
    """Two empty states give NaN, whatever is drawn: they are among the reported inputs. Doubling holds."""
    readme = (ROOT / "README.md").read_text()
    (source,) = re.findall(r"```python\n# my_kernels.py\n(.*?)```", readme, re.DOTALL)
    (elsewhere / "my_kernels.py").write_text(source)
    done = _verify(elsewhere, "my_kernels.py:impl", "--law", "1", "--law", "6", "--json", "told.json")
    assert done.returncode == 1, done.stdout + done.stderr
    told = json.loads((elsewhere / "told.json").read_text())
    assert {law["law"]: law["verdict"] for law in told["laws"]}.items() >= {1: "BROKEN", 6: "holds"}.items()
    assert "s = torch.tensor([[[-inf], [-inf]]], dtype=" in told["broken"][0]["python"]


def test_a_wrong_target_ends_with_1_and_the_counterexample_shows_it(elsewhere: Path) -> None:
    """The program that the report holds runs with PyTorch and the target alone, and prints what was wrong."""
    done = _verify(elsewhere, "targets.py:wrong", "--law", "3", "--json", "told.json")
    assert done.returncode == 1, done.stdout + done.stderr
    (broken,) = json.loads((elsewhere / "told.json").read_text())["broken"]
    assert broken["law"] == 3 and broken["kind"] == "wrong" and broken["ratio"] > 1.0
    assert "BROKEN" in done.stdout and broken["reproduce"].startswith(
        "mergelaws verify targets.py:wrong --law 3 --seed "
    )
    assert "import mergelaws" not in broken["python"]
    path = str(ROOT / "src")
    shown = subprocess.run(  # noqa: S603
        [sys.executable, "-c", broken["python"]],
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=True,
    )
    outputs = re.findall(r"tensor\((\[+.*?\]+)", shown.stdout.replace("\n", ""))
    assert len(outputs) == 4 and outputs[1] != outputs[3], shown.stdout  # v and s, v and s in float64
    assert broken["python"].count("# actual") == 2


@pytest.mark.parametrize(
    ("target", "says"),
    (
        ("nowhere.py:f", "nowhere.py' was tried and not found"),
        ("targets.py:refuses", "merge_state on cpu raised RuntimeError: not here"),
    ),
)
def test_a_target_that_cannot_be_loaded_or_called_ends_with_2(elsewhere: Path, target: str, says: str) -> None:
    """And the message says what was tried."""
    done = _verify(elsewhere, target)
    assert done.returncode == 2
    assert says in done.stderr.replace("\n", " "), done.stderr


@pytest.mark.parametrize(
    ("target", "kind", "says"), (("hangs", "hung", "did not come back"), ("crashes", "crashed", "ended the process"))
)
def test_a_target_that_hangs_or_ends_the_process_has_its_verdict_and_the_run_goes_on(
    elsewhere: Path, target: str, kind: str, says: str
) -> None:
    """With more than one row it does; the law that has one row alone is still asked, and holds."""
    done = _verify(elsewhere, f"targets.py:{target}", "--law", "3", "--law", "4", "--limit", "2", "--json", "told.json")
    assert done.returncode == 1, done.stdout + done.stderr
    told = json.loads((elsewhere / "told.json").read_text())
    laws = {law["law"]: law["verdict"] for law in told["laws"]}
    assert (laws[3], laws[4]) == ("BROKEN", "holds")
    (broken,) = told["broken"]
    assert broken["kind"] == kind and says in broken["message"] and says in done.stdout


def test_a_known_failure_is_expected_and_policed(elsewhere: Path) -> None:
    """One that fails is no failure; one that no longer fails is an error."""
    done = _verify(elsewhere, "targets.py:expected", "--law", "3", "--json", "told.json")
    assert done.returncode == 0, done.stdout + done.stderr
    assert json.loads((elsewhere / "told.json").read_text())["laws"][2]["verdict"] == "known failure"
    done = _verify(elsewhere, "targets.py:outlived", "--law", "3")
    assert done.returncode == 1 and "known failure test_merging_is_commutative no longer fails" in done.stdout


def test_entries_of_known_failures_name_a_property_or_one_set_of_its_parameters() -> None:
    """An entry without parameters covers them all, and lives while one of them fails."""
    entries = (("test_a", "why"), ("test_b[2]", "why not"))
    assert known.reason("test_a[1]", entries) == "why" and known.reason("test_b[1]", entries) == ""
    outcomes = {"test_a[1]": "known", "test_a[2]": "passed", "test_b[2]": "passed"}
    assert known.outlived(entries, outcomes) == ["test_b[2]"]
    assert known.outlived(entries, {"test_b[2]": "skipped"}) == []
    assert known.outlived((("test_b[2]", "at times: chance"),), outcomes) == []
    assert known.unheard_of(entries) == ["test_a", "test_b[2]"]
    assert known.unheard_of((("TestMergeTrees::runTest", ""), ("test_any_head_size[1-merge_state]", ""))) == []


def test_the_list_says_what_is_here_and_why_not(elsewhere: Path) -> None:
    """Ours is; of a package that is not installed it names the package."""
    done = _run(elsewhere, "list")
    assert done.returncode == 0, done.stderr
    lines = {line.split()[0]: line for line in done.stdout.splitlines() if line}
    assert "installed: merge_state, merge_state_in_place" in lines["ours"] and "torch" in lines
    for name, package in (("ring_flash_attention", "ring-flash-attn"), ("attention_gym", "attn-gym")):
        absent = "not installed: there is no module" in lines[name] and package in lines[name]
        assert absent or "installed: merge_state" in lines[name]


def _page() -> str:
    """A page with everything on it."""
    worst = [
        {"law": 1, "operation": "merge_state", "dtype": "float16", "output": o, "ratio": r}
        for o, r in (("v", 0.5), ("s", 7e9))
    ]
    finding = {
        "law": 1,
        "property": "test_" + "x" * 90,
        "message": "y" * 300,
        "python": "z = 1" * 60,
        "reproduce": "mergelaws",
    }
    law = {
        "words": "within the bound of the exact merge",
        "examples": 12345,
        "worst": {"v": 0.5, "s": 7e9},
        "properties": [],
    }
    verdicts = ("holds", "BROKEN", "known failure", "not checked")
    return report.html(
        {
            "target": "some/long/path/to/kernels.py:merge_attention_states", "device": "CPU", "date": "today", "profile": "quick",
            "seed": "1", "errors": [], "laws": [{**law, "law": n, "verdict": verdicts[n % 4]} for n in LAWS], "worst": worst,
            "broken": [finding], "known_failures": [finding], "not_claimed": ["a"], "not_checked": {"b": 2}, "versions": {"torch": "2"},
        }
    )  # fmt: skip


@pytest.mark.skipif(CHROMIUM is None, reason="needs chromium, to open the page in")
@pytest.mark.parametrize("width", (1280, 400))
def test_the_page_fits_a_browser_window(tmp_path: Path, width: int) -> None:
    """Nothing is wider than a window of 1280 or 400 pixels, and every law has its row."""
    assert CHROMIUM is not None
    probe = (
        "<script>const f = document.querySelector('iframe'); f.onload = () => { const d = f.contentDocument.documentElement;"
        "document.title = [d.scrollWidth, d.clientWidth, f.contentDocument.querySelectorAll('#laws tbody tr').length,"
        "f.contentDocument.querySelectorAll('svg rect').length].join(' '); };</script>"
    )
    page = _page().replace("&", "&amp;").replace('"', "&quot;")
    host = tmp_path / "host.html"
    frame = f'<iframe width="{width}" height="900" style="border:0" srcdoc="{page}"></iframe>'
    host.write_text(f"<!doctype html><title></title>{frame}{probe}")
    command = [CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", "--window-size=1400,1000", "--virtual-time-budget=3000",
               f"--user-data-dir={tmp_path / 'profile'}", "--dump-dom", host.as_uri()]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)  # noqa: S603
    title = re.search(r"<title>(\d+) (\d+) (\d+) (\d+)</title>", done.stdout)
    assert title is not None, done.stdout[:300]
    scroll, client, rows, bars = map(int, title.groups())
    assert scroll <= client <= width and rows == len(LAWS) and bars == 2
