"""The adapters of third-party implementations, and the page that tells what their runs found."""

from __future__ import annotations

import importlib
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

import implementations
from benchmarks import conformance
from mergelaws import adapter
from mergelaws.implementation import Implementation
from properties import known

THIRD_PARTY = [name for name in implementations.known() if name not in conformance.OWN]


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A package whose `__init__` cannot run, with a module two levels below."""
    name = "heavy_package_of_a_test"
    below = tmp_path / name / "ops"
    below.mkdir(parents=True)
    for folder in (below.parent, below):
        (folder / "__init__.py").write_text("raise RuntimeError('the import is heavy')\n")
    (below / "merge.py").write_text("from platform_of_a_test import answer\nfrom .near import number\n")
    (below / "near.py").write_text("number = 7\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    yield name
    for loaded in [loaded for loaded in sys.modules if loaded.split(".")[0] == name]:
        del sys.modules[loaded]


def test_a_module_is_loaded_without_what_is_above_it(package: str) -> None:
    stand_in = SimpleNamespace(answer=42)
    module = implementations.alone(f"{package}.ops.merge", package, {"platform_of_a_test": stand_in})
    assert (module.answer, module.number) == (42, 7)
    assert "platform_of_a_test" not in sys.modules
    assert implementations.alone(f"{package}.ops.near", package).number == 7


def test_what_is_not_installed_says_what_to_install() -> None:
    with pytest.raises(LookupError, match="pip install the-package"):
        implementations.alone("no_such_package_here.ops.merge", "the-package")


@pytest.mark.filterwarnings("ignore")  # what other packages warn of when they are imported
@pytest.mark.parametrize("name", THIRD_PARTY)
def test_an_adapter_loads_or_says_what_is_missing(name: str) -> None:
    told = ""
    try:
        found = implementations.find(name)
    except LookupError as error:
        told = str(error)
    except (ImportError, OSError):  # its library wants CUDA
        told = "pip install" if name in ("sgl_kernel", "vllm") else "an error"
    if told:
        assert "pip install" in told
    else:
        assert isinstance(found, Implementation) and found.name == name
        assert not known.unheard_of(found.known_failures)
        assert not known.unheard_of(found.differs)


@pytest.mark.parametrize("name", THIRD_PARTY)
def test_an_adapter_in_plain_python_needs_nothing_of_this_project(name: str) -> None:
    program = "\n".join(adapter.adapted(conformance.source(name)))
    compile(program, name, "exec")
    assert "def merge_state(v_a, s_a, v_b, s_b):" in program
    assert not [word for word in ("implementations", "mergelaws", "alone(", "require(") if word in program]


def test_the_page_is_what_the_kept_runs_tell() -> None:
    told = [json.loads(path.read_text()) for path in sorted(conformance.KEPT.glob("*.json"))]
    assert len(told) >= 8
    assert (conformance.ROOT / "docs" / "conformance.md").read_text() == conformance.page(told)
    assert {one["target"] for one in told} <= set(THIRD_PARTY)


def test_a_law_that_fails_in_undocumented_cases_alone_differs() -> None:
    found = {
        "law": 3,
        "property": "test_x",
        "kind": "wrong",
        "message": "merge_state: wrong\n  input     s = [-inf, -inf]",
        "python": "import torch\nv = torch.ones(1)\n",
    }
    law = {"law": 3, "verdict": "BROKEN", "examples": 1}
    told = {
        **{key: [] for key in ("date", "profile", "seed", "versions", "operations", "not_claimed", "known_failures")},
        "target": "attention_gym",
        "device": "CPU",
        "laws": [law],
        "broken": [found],
        "differs": [["test_x", "why"]],
    }
    row = conformance.trimmed(told)["laws"][0]
    assert (row["verdict"], row["plainest"]["python"]) == ("differs", "v = torch.ones(1)")
    told["broken"] = [{**found, "message": "merge_state: wrong\n  input     s = [0, 1]"}]
    assert conformance.trimmed(told)["laws"][0]["verdict"] == "wrong"
    told["broken"] = [found, {**found, "property": "test_y"}]
    row = conformance.trimmed(told)["laws"][0]
    assert (row["verdict"], row["failed"], row["plainest"]["property"]) == ("wrong", ["test_x", "test_y"], "test_y")


def test_files_for_several_adapters_are_no_implementations() -> None:
    assert importlib.import_module("implementations._sigmoid").KNOWN_FAILURES
    assert not [name for name in implementations.known() if name.startswith("_")]
