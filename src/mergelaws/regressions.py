"""Regressions: failures that become examples of the property that they broke, and stay.

A failing run leaves a patch in .hypothesis/patches that adds `@example(...).via("discovered failure")`. Applying it here
puts the reason and a link in the place of these words, and imports what the example names.
"""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

import libcst
from libcst.codemod import CodemodContext
from libcst.codemod.visitors import AddImportsVisitor

PATCHES = Path(".hypothesis") / "patches"
FOUND = '.via("discovered failure")'

# Where the names are from that an example may use.
_ORIGINS = {
    "example": "hypothesis",
    "Problem": "properties.cases",
    "Segments": "properties.cases",
    "States": "properties.cases",
}


@dataclass(frozen=True)
class Patch:
    """One patch file: the hunks for one or more property files."""

    file: Path
    text: str

    @property
    def properties(self) -> list[str]:
        """The tests that get an example."""
        return re.findall(r"^ def (test_\w+)", self.text, re.MULTILINE)

    @property
    def examples(self) -> list[str]:
        """The examples that are added, a line each."""
        added = "\n".join(line[1:] for line in self.text.splitlines() if line.startswith("+") and line[:3] != "+++")
        calls = re.split(r"^@", added, flags=re.MULTILINE)
        return [ast.unparse(ast.parse(call.replace(FOUND, ""))) for call in calls if call.startswith("example(")]

    @property
    def sources(self) -> list[str]:
        """The names of the property files."""
        return sorted(set(re.findall(r"^\+\+\+ .*properties/(test_\w+\.py)$", self.text, re.MULTILINE)))

    def with_reason(self, reason: str, link: str) -> str:
        """The patch for a clone's root, with `reason` and `link` in the place of Hypothesis's words."""
        text = re.sub(
            r"^(---|\+\+\+) .*?properties/(test_\w+\.py)$", r"\1 x/properties/\2", self.text, flags=re.MULTILINE
        )
        words = f"{reason}, {link}".replace("\\", "\\\\").replace('"', '\\"')
        return text.replace(FOUND, f'.via("{words}")')


def found(directory: Path = PATCHES) -> list[Patch]:
    """The patches that are there, the oldest first."""
    files = sorted(directory.glob("*.patch"), key=lambda file: file.stat().st_mtime) if directory.is_dir() else []
    return [Patch(file, file.read_text()) for file in files]


def kept(suite: Path) -> list[tuple[str, str]]:
    """The examples that stay: (property, reason), in the order of the files."""
    told = []
    for file in sorted((suite / "properties").glob("test_*.py")):
        for statement in libcst.parse_module(file.read_text()).body:
            if not isinstance(statement, libcst.FunctionDef):
                continue
            for decorator in statement.decorators:
                words = _via(decorator.decorator)
                if words:
                    told.append((statement.name.value, words))
    return told


def _via(decorator: libcst.BaseExpression) -> str:
    """The words of `@example(...).via(words)`; "" for another decorator."""
    if not isinstance(decorator, libcst.Call) or not isinstance(decorator.func, libcst.Attribute):
        return ""
    words = decorator.args[0].value if decorator.func.attr.value == "via" else None
    return str(words.evaluated_value) if isinstance(words, libcst.SimpleString) else ""


def apply(patch: Patch, clone: Path, reason: str, link: str) -> None:
    """Adds the patch's examples to the property files of `clone`.

    Raises ValueError, having changed nothing, if the reason or the link is empty or the patch does not fit the files.
    """
    for name, words in (("reason", reason), ("link", link)):
        if not words.strip():
            raise ValueError(f"{name} is {words!r}; it must say why the example is kept, and where that was found out")
    text = patch.with_reason(reason, link)
    for check in (["--check"], []):
        command = ["git", "apply", "-p1", *check, "-"]
        done = subprocess.run(command, cwd=clone, input=text, capture_output=True, text=True, check=False)  # noqa: S603
        if done.returncode:
            raise ValueError(f"{patch.file} does not fit the properties in {clone}: {done.stderr.strip()}")
    for source in patch.sources:
        file = clone / "properties" / source
        file.write_text(_with_imports(file.read_text()))


def _with_imports(source: str) -> str:
    """The module with an import of each name that an example may use, where it uses the name and has it not."""
    module, context = libcst.parse_module(source), CodemodContext()
    for name, origin in _ORIGINS.items():
        if re.search(rf"\b{name}\(", source):
            AddImportsVisitor.add_needed_import(context, origin, name)
    if re.search(r"\bmath\.", source):
        AddImportsVisitor.add_needed_import(context, "math")
    return AddImportsVisitor(context).transform_module(module).code


def fails(suite: Path, name: str, target: str) -> tuple[bool, str]:
    """Whether the property `name` fails on `target` with its examples alone, and what was printed.

    Raises LookupError if there is no such property, RuntimeError if it could not be asked.
    """
    files = [file for file in (suite / "properties").glob("test_*.py") if f"def {name}(" in file.read_text()]
    if not files:
        raise LookupError(f"there is no property {name!r} in {suite / 'properties'}")
    with tempfile.TemporaryDirectory(prefix="mergelaws-") as nothing:
        environment = {**os.environ, "MERGELAWS_DATABASE": nothing}
        command = [sys.executable, "-m", "pytest", f"{files[0]}::{name}", f"--rootdir={suite}", "--import-mode=prepend",
                   f"--config-file={suite / 'pyproject.toml'}", "-p", "no:cacheprovider", "-W", "ignore", "-q",
                   f"--impl={target}", "--hypothesis-profile=replay"]  # fmt: skip
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)  # noqa: S603
    if done.returncode not in (0, 1):
        raise RuntimeError(f"{name} could not be asked of {target}:\n{done.stdout}{done.stderr}")
    return done.returncode == 1, done.stdout
