"""Running the properties in this process on one implementation after another, and who kills whom.

The budget is fixed: the same examples every time (derandomized, no database), no shrinking. Every law asks every mutant
with FEW examples per property and one typical set of parameters per test: that is the matrix. A mutant that outlives it is asked
with MANY, and with all parameters, until it dies; a right implementation is asked so from the start, and to the end. Run as
a program it prints the matrix of mutants and laws; `make mutants` does that.
"""

from __future__ import annotations

import contextlib
import importlib
import io
import itertools
import os
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

import mergelaws  # before Triton  # isort: skip
import pytest
import torch
from hypothesis import HealthCheck, Phase, settings
from rich.console import Console
from rich.progress import Progress

import properties
from implementations.mutants import MUTANTS
from implementations.variants import VARIANTS
from properties import record, subject
from properties.laws import LAWS

FEW = 5
MANY = 40
CORPUS = {**MUTANTS, **VARIANTS}


@dataclass(frozen=True)
class Property:
    """One property, or one parameter set of a test: its law, its name, what it needs, and the test itself."""

    law: int
    name: str
    needs: dict[str, tuple[str, ...]]
    run: Callable[[settings], None]
    typical: bool  # of the parameter sets of a test, the last one; of a test of refusals, which cost nothing, each


@dataclass
class Judgement:
    """What the properties say of one implementation: the first kill of each law, as (property, examples, message)."""

    name: str
    kills: dict[int, tuple[str, int, str]] = field(default_factory=dict)
    examples: int = 0
    first: tuple[int, str, int] | None = None  # law, property, examples of that property
    seconds: float = 0.0


def all_properties() -> list[Property]:
    """Every property of every file, law by law; those that need a GPU only where there is one."""
    found = []
    for path in sorted(Path(properties.__path__[0]).glob("test_*.py")):
        module = importlib.import_module(f"properties.{path.stem}")
        for name, test in vars(module).items():
            marks = getattr(test, "pytestmark", [])
            law = next((mark for mark in marks if mark.name == "law"), None)
            gpu = any(mark.name == "gpu" for mark in marks)
            if law is None or test.__module__ != module.__name__ or (gpu and not torch.cuda.is_available()):
                continue
            *others, last = _runs(test, marks)
            found += [
                Property(law.args[0], name, law.kwargs, run, run is last or law.args[0] == 17)
                for run in (*others, last)
            ]
    return sorted(found, key=lambda one: (one.law == 18, one.law))  # the costly one last


def _runs(test: Any, marks: list[Any]) -> Iterator[Callable[[settings], None]]:
    """The test as functions of a budget: a state machine's case, a property, or a call per set of parameters."""
    if isinstance(test, type):
        yield partial(_run_machine, test)
    elif hasattr(test, "hypothesis"):
        yield partial(_run_property, test)
    else:
        choices = []
        for mark in marks:
            if mark.name == "parametrize":
                names = [word.strip() for word in mark.args[0].split(",")]
                values = [value if len(names) > 1 else (value,) for value in mark.args[1]]
                choices.append([dict(zip(names, value, strict=True)) for value in values])
        for chosen in itertools.product(*choices):
            yield partial(_run_plain, test, {key: value for one in chosen for key, value in one.items()})


def _run_machine(case: Any, budget: settings) -> None:
    case.settings = budget
    case("runTest").runTest()


def _run_property(test: Any, budget: settings) -> None:
    # Hypothesis keeps the settings of the moment of @given on the test; there is no public way to give it others later.
    test._hypothesis_internal_use_settings = budget  # noqa: SLF001
    test()


def _run_plain(test: Any, parameters: dict[str, Any], budget: settings) -> None:
    test(**parameters)


def _budget(examples: int) -> settings:
    """So many examples per property, the same ones every time, and nothing spent on a smaller input."""
    return settings(
        settings.get_profile("default"),
        max_examples=examples,
        stateful_step_count=15,
        derandomize=True,
        database=None,
        deadline=None,
        phases=(Phase.explicit, Phase.generate),
        suppress_health_check=list(HealthCheck),
        report_multiple_bugs=False,
    )


def judge(name: str) -> Judgement:
    """The judgement of the corpus's implementation `name`."""
    judgement, began = Judgement(name), time.monotonic()
    with subject.using(CORPUS[name]), warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
        warnings.simplefilter("ignore")
        asked = [one for one in all_properties() if not subject.missing(**one.needs)]
        if name in MUTANTS:
            for one in asked:
                if one.typical and one.law not in judgement.kills:
                    _ask(one, judgement, FEW)
        for one in asked:
            if name in VARIANTS or not judgement.kills:
                _ask(one, judgement, MANY)
    judgement.seconds = time.monotonic() - began
    return judgement


def _ask(one: Property, judgement: Judgement, examples: int) -> None:
    record.reset()
    try:
        one.run(_budget(examples))
    except pytest.skip.Exception:
        pass
    except Exception as error:  # whatever a mutant raises is its death
        spent = record.current().examples[one.law]
        message = next((line for line in str(error).splitlines() if line.strip()), type(error).__name__)
        judgement.kills.setdefault(one.law, (one.name, spent, message[:200]))
        if judgement.first is None:
            judgement.first = (one.law, one.name, spent)
    judgement.examples += record.current().examples[one.law]


def judge_all(names: list[str], workers: int, tell: Callable[[Judgement], None] = lambda _: None) -> list[Judgement]:
    """The judgements of several implementations, in the order of `names`, by several processes."""
    done: dict[str, Judgement] = {}
    with ProcessPoolExecutor(workers, initializer=torch.set_num_threads, initargs=(1,)) as pool:
        for future in as_completed([pool.submit(judge, name) for name in names]):
            judgement = future.result()
            done[judgement.name] = judgement
            tell(judgement)
    return [done[name] for name in names]


@dataclass(frozen=True)
class Verdict:
    """What the judgements of the whole corpus come to."""

    mutants: list[Judgement]
    variants: list[Judgement]

    @property
    def alive(self) -> list[str]:
        """Mutants that no law killed."""
        return [one.name for one in self.mutants if not one.kills]

    @property
    def wronged(self) -> list[Judgement]:
        """Right implementations that a law killed."""
        return [one for one in self.variants if one.kills]

    @property
    def idle(self) -> list[int]:
        """Laws that kill nothing, of those that have properties."""
        asked = {one.law for one in all_properties()}
        return sorted(law for law in asked if not any(law in one.kills for one in self.mutants))

    def closing_line(self) -> str:
        """killed K of K, lives L of L."""
        killed, lives = len(self.mutants) - len(self.alive), len(self.variants) - len(self.wronged)
        return f"killed {killed} of {len(self.mutants)}, lives {lives} of {len(self.variants)}"


def matrix(verdict: Verdict) -> str:
    """Mutants down, laws across; x where a law kills, then the first killer and the examples that it took."""
    laws = [law for law in LAWS if any(law == one.law for one in all_properties())]
    width = max(len(name) for name in CORPUS)
    lines = [" " * width + "  " + "".join(f"{law:>3}" for law in laws) + "  first killed by (examples)"]
    for one in [*verdict.mutants, *verdict.variants]:
        marks = "".join("  x" if law in one.kills else "  ." for law in laws)
        first = f"{one.first[1].removeprefix('test_')} ({one.first[2]})" if one.first else "lives"
        lines.append(f"{one.name:<{width}}  {marks}  {first}")
    total = "".join(f"{sum(law in one.kills for one in verdict.mutants):>3}" for law in laws)
    lines.append(f"{'killed by each law':<{width}}  {total}")
    return "\n".join(lines)


def main() -> int:
    """Judges the corpus, prints the matrix and the closing line; 0 if every mutant dies, every variant lives, every law kills."""
    assert mergelaws.__version__
    console = Console()
    workers = os.cpu_count() or 1
    began = time.monotonic()
    with Progress(console=Console(stderr=True)) as progress:
        task = progress.add_task("judging", total=len(CORPUS))

        def tell(one: Judgement) -> None:
            progress.advance(task)
            if not progress.console.is_terminal:
                print(f"{one.seconds:5.1f} s  {one.name}", file=sys.stderr, flush=True)

        judgements = judge_all(list(CORPUS), workers, tell)
    verdict = Verdict(judgements[: len(MUTANTS)], judgements[len(MUTANTS) :])
    print(matrix(verdict))
    for name in verdict.alive:
        console.print(f"[bold red]lives, and is wrong:[/] {name}", highlight=False)
    for one in verdict.wronged:
        for law, (test, _, message) in one.kills.items():
            console.print(f"[bold red]dies, and is right:[/] {one.name}, law {law}, {test}: {message}", highlight=False)
    for law in verdict.idle:
        console.print(f"[bold red]kills nothing:[/] law {law}", highlight=False)
    spent = [one.first[2] for one in verdict.mutants if one.first]
    print(f"examples to the first kill: median {median(spent):g}, most {max(spent)}; {time.monotonic() - began:.0f} s")
    print(verdict.closing_line())
    return 1 if verdict.alive or verdict.wronged or verdict.idle else 0


if __name__ == "__main__":
    sys.exit(main())
