"""Nothing is untested: every public operation has properties, every law has some, every public report is a test."""

import importlib
import inspect
import json
from pathlib import Path

import mergelaws
from mergelaws.implementation import BITWISE_CLAIMS, OPERATIONS
from properties import laws
from properties.public_cases import NUMERIC, STRUCTURAL_TESTS

PROPERTIES = Path(laws.__file__).parent


def _tests() -> dict[str, object]:
    """Every test function and class of the properties, by module.name."""
    found = {}
    for path in sorted(PROPERTIES.glob("test_*.py")):
        module = importlib.import_module(f"properties.{path.stem}")
        for name, value in vars(module).items():
            if name.lower().startswith("test") and getattr(value, "__module__", "") == module.__name__:
                found[f"{path.stem}.{name}"] = value
    return found


def test_every_public_operation_is_called_by_the_properties() -> None:
    """The public names of the package are the tested ones, and those that say what an implementation is."""
    source = "".join(path.read_text() for path in PROPERTIES.glob("*.py"))
    source += "".join(path.read_text() for path in Path(__file__).parent.glob("*.py"))
    for name in mergelaws.__all__:
        assert name in source, f"{name} is public and no test speaks of it"
    for operation in OPERATIONS:
        assert callable(getattr(mergelaws, operation))


def test_every_property_has_a_law_and_every_law_has_a_property() -> None:
    """Laws 1 to 19 have properties, and no test in properties/ is without a law."""
    seen = set()
    for name, test in _tests().items():
        marks = [mark for mark in getattr(test, "pytestmark", []) if mark.name == "law"]
        assert len(marks) == 1, f"{name} has {len(marks)} laws"
        seen.add(marks[0].args[0])
    assert seen == set(laws.LAWS) - {20}, "20, gradients, is for implementations that have one"


def test_every_property_is_a_sentence() -> None:
    """Each has a docstring that says what holds."""
    for name, test in _tests().items():
        assert inspect.getdoc(test), f"{name} says nothing"


def test_every_public_report_is_a_test() -> None:
    """Each structural report names a test that exists; each numeric one is an explicit example."""
    reports = json.loads((PROPERTIES / "public_cases.json").read_text())
    assert {entry["id"] for entry in reports["structural"]} == set(STRUCTURAL_TESTS)
    tests = _tests()
    for report, test in STRUCTURAL_TESTS.items():
        assert test in tests, f"{report} names {test}, which does not exist"
    assert [case.name for case in NUMERIC] == [entry["id"] for entry in reports["numeric"]]


def test_every_bitwise_claim_is_asked_for() -> None:
    """A claim that no property looks up would be decoration."""
    source = "".join(path.read_text() for path in PROPERTIES.glob("test_*.py"))
    for claim in BITWISE_CLAIMS:
        assert f'claims("{claim}")' in source, f"no property asks for {claim!r}"
