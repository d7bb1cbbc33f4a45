"""Which implementation is judged, for how long, and what is told: the options, profiles, header and closing tables.

    --impl TARGET   a known name, mutants:NAME, variants:NAME, package.module:attribute or path/to/file.py:attribute
    --law N         only the properties of law N; may be given again
    --hypothesis-profile quick | nightly | replay
"""

from __future__ import annotations

import json
import random
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import mergelaws  # before Triton: decides whether kernels are interpreted  # isort: skip

import hypothesis
import mpmath
import pytest
import torch
import triton
from hypothesis import HealthCheck, Phase, settings
from hypothesis.database import DirectoryBasedExampleDatabase

import implementations
from properties import progress, record, subject, table
from properties.laws import LAWS

REPORT = pytest.StashKey["Report"]()


class Report:
    """Outcomes per law, gathered from every process."""

    def __init__(self) -> None:
        self.outcomes: table.Outcomes = {}
        self.skips: Counter[str] = Counter()
        self.teller: progress.Teller | None = None


def register_profiles(implementation: str) -> None:
    """The three profiles. Each implementation has a database of its own: Hypothesis's key does not know it.

    Hypothesis's default profile is the parent, so that an environment with CI set fuzzes as any other does.
    """
    name = "".join(letter if letter.isalnum() or letter in "-_." else "-" for letter in implementation)
    common: dict[str, Any] = {
        "parent": settings.get_profile("default"),
        "database": DirectoryBasedExampleDatabase(Path(".hypothesis") / "examples" / name),
        "deadline": None,  # the interpreter takes milliseconds for a launch, the first one far longer
        "suppress_health_check": [HealthCheck.too_slow],  # the same
        "report_multiple_bugs": False,  # one smallest input per property
        "print_blob": True,
        "derandomize": False,
    }
    settings.register_profile("quick", max_examples=50, **common)
    settings.register_profile("nightly", max_examples=5000, **common)
    settings.register_profile("replay", phases=(Phase.explicit, Phase.reuse), **common)


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("mergelaws")
    group.addoption("--impl", default="ours", metavar="TARGET", help="the implementation to judge (default: ours)")
    group.addoption("--law", type=int, action="append", default=[], metavar="N", help="only the properties of law N")


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    target = config.getoption("--impl")
    unknown = sorted(set(config.getoption("--law")) - set(LAWS))
    if unknown:
        raise pytest.UsageError(f"--law is {unknown[0]}; it must be from {min(LAWS)} to {max(LAWS)}")
    try:
        subject.use(implementations.find(target))
    except (LookupError, TypeError, ValueError) as error:
        raise pytest.UsageError(f"--impl: {error}") from error
    register_profiles(target)
    settings.load_profile("quick")
    if config.getoption("hypothesis_seed") is None:
        config.option.hypothesis_seed = str(random.SystemRandom().randrange(2**32))
    config.stash[REPORT] = Report()
    if hasattr(config, "workerinput"):
        progress.note_in(Path(config.workerinput["progress"]))


def pytest_report_header(config: pytest.Config) -> list[str]:
    profile = config.getoption("hypothesis_profile", default=None) or "quick"
    versions = f"torch {torch.__version__}, triton {triton.__version__}, hypothesis {hypothesis.__version__}"
    implementation = subject.current()
    return [
        f"mergelaws: implementation {implementation.name} on {subject.device()}; our kernels on {mergelaws.backend.describe()}",
        f"mergelaws: {versions}, mpmath {mpmath.__version__} ({mpmath.libmp.BACKEND}), python {sys.version.split()[0]}",
        f"mergelaws: profile {profile}, seed {config.getoption('hypothesis_seed')}",
    ]


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    wanted = set(config.getoption("--law"))
    kept, dropped = [], []
    for item in items:
        mark = item.get_closest_marker("law")
        if mark is not None:
            item.extra_keyword_matches.add(f"law{mark.args[0]}")
        (kept if not wanted or (mark is not None and mark.args[0] in wanted) else dropped).append(item)
    items[:] = kept
    if dropped:
        config.hook.pytest_deselected(items=dropped)


def pytest_runtest_setup(item: pytest.Item) -> None:
    mark = item.get_closest_marker("law")
    missing = subject.missing(**mark.kwargs) if mark else ""
    if missing:
        pytest.skip(f"{subject.current().name} does not offer {missing}")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Iterator[None]:
    report = yield
    mark = item.get_closest_marker("law")
    if mark is not None:
        report.law = mark.args[0]
    if report.failed and report.when == "call":
        line = f"python -m pytest '{item.nodeid}' --impl {item.config.getoption('--impl')}"
        seed = item.config.getoption("hypothesis_seed")
        report.sections.append(("reproduce", f"{line} --hypothesis-seed={seed}"))
    return report


def pytest_runtest_logreport(report: Any) -> None:
    if not hasattr(report, "law"):
        return
    if report.when == "call" or report.outcome != "passed":
        _reports.append((report.law, report.outcome, _reason(report)))


_reports: list[tuple[int, str, str]] = []


def _reason(report: Any) -> str:
    return str(report.longrepr[2]).removeprefix("Skipped: ") if report.skipped else ""


def pytest_sessionstart(session: pytest.Session) -> None:
    config = session.config
    if hasattr(config, "workerinput"):
        return
    directory = Path(tempfile.mkdtemp(prefix="mergelaws-progress-"))
    progress.note_in(directory)
    reporter = config.pluginmanager.getplugin("terminalreporter")
    if reporter is not None:
        teller = progress.Teller(directory, lambda line: reporter.write_line(f"\n  {line}"))
        config.stash[REPORT].teller = teller
        teller.start()
    config.stash[_DIRECTORY] = directory


_DIRECTORY = pytest.StashKey[Path]()


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """pytest-xdist, on the controller, before a worker starts."""
    directory = Path(tempfile.gettempdir()) if _DIRECTORY not in node.config.stash else node.config.stash[_DIRECTORY]
    node.workerinput["progress"] = str(directory)


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any, error: Any) -> None:
    """pytest-xdist, on the controller, after a worker ended."""
    plain = getattr(node, "workeroutput", {}).get("record")
    if plain is not None:
        record.current().add(record.Record.from_plain(json.loads(plain)))


def pytest_sessionfinish(session: pytest.Session) -> None:
    config = session.config
    if hasattr(config, "workeroutput"):
        config.workeroutput["record"] = json.dumps(record.current().as_plain())
    elif config.stash[REPORT].teller is not None:
        config.stash[REPORT].teller.stop()


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    if not _reports:
        return
    outcomes: table.Outcomes = {}
    skips: Counter[str] = Counter()
    for law, outcome, reason in _reports:
        outcomes.setdefault(law, Counter())[outcome] += 1
        if outcome == "skipped":
            skips[reason] += 1
    seen = record.current()
    colour = bool(terminalreporter.hasmarkup)
    width = terminalreporter._tw.fullwidth
    only = set(config.getoption("--law"))
    terminalreporter.section(f"the laws, for {subject.current().name}")
    terminalreporter.write(table.printed(table.law_table(seen, outcomes, only), width, colour))
    terminalreporter.write(table.printed(table.ratio_table(seen), width, colour))
    for reason, count in skips.most_common():
        terminalreporter.write_line(f"not checked ({count}): {reason}")
    for words in subject.current().narrow_claims():
        terminalreporter.write_line(f"not claimed: {words}")
