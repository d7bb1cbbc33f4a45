"""Which implementation is judged, for how long, and what is told: the options, profiles, header and closing tables.

--impl TARGET   a known name, mutants:NAME, variants:NAME, package.module:attribute or path/to/file.py:attribute
--law N         only the properties of law N; may be given again
--hypothesis-profile quick | nightly | replay
--time-limit SECONDS   a property that makes no progress for so long is ended and counts as failed
--ignore-known  judges as if no failure were known
--examples N    as many examples per property, in the nightly profile
--until MOMENT  no example is begun after that moment, in seconds since the epoch; the properties come in any order
--laws-json FILE, --laws-html FILE   the report
"""

from __future__ import annotations

import datetime
import importlib.metadata
import os
import random
import shutil
import sys
import tempfile
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Any

import mergelaws  # before Triton: decides whether kernels are interpreted  # isort: skip

import hypothesis
import mpmath
import pytest
import torch
import triton

import implementations
from mergelaws import report as page
from properties import deadline, finding, known, limit, profiles, progress, record, subject, table
from properties.gathered import Gathered
from properties.laws import LAWS

TELLER = pytest.StashKey[progress.Teller]()
DIRECTORY = pytest.StashKey[Path]()
NOTES = pytest.StashKey[limit.Notes]()
NOTE = pytest.StashKey[Path]()
ERRORS = pytest.StashKey[list[str]]()
SEED = pytest.StashKey[int]()


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("mergelaws")
    group.addoption("--impl", default="ours", metavar="TARGET", help="the implementation to judge (default: ours)")
    group.addoption("--law", type=int, action="append", default=[], metavar="N", help="only the properties of law N")
    words = "end a property that makes no progress for so long (0: never)"
    group.addoption("--time-limit", type=float, default=0.0, metavar="SECONDS", help=words)
    group.addoption(
        "--examples", type=int, default=5000, metavar="N", help="examples per property, in the nightly profile"
    )
    group.addoption(
        "--until", type=float, metavar="MOMENT", help="seconds since the epoch: no example is begun after that"
    )
    words = "judge as if no failure were known, and make its input as small as that of any other"
    group.addoption("--ignore-known", action="store_true", help=words)
    group.addoption("--laws-json", metavar="FILE", help="write the report as JSON")
    group.addoption("--laws-html", metavar="FILE", help="write the report as one HTML page")


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    target = config.getoption("--impl")
    unknown = sorted(set(config.getoption("--law")) - set(LAWS))
    if unknown:
        raise pytest.UsageError(f"--law is {unknown[0]}; it must be from {min(LAWS)} to {max(LAWS)}")
    try:
        subject.use(implementations.find(target))
    except Exception as error:  # a file may raise anything while it is loaded
        told = str(error) if isinstance(error, LookupError | TypeError | ValueError) else repr(error)
        raise pytest.UsageError(f"--impl {target}: {told}") from error
    for entry in known.unheard_of(subject.current().known_failures):
        raise pytest.UsageError(f"--impl {target}: known failure {entry!r} names no property")
    try:
        profiles.register(target, config.getoption("--examples"))
        wish = config.workerinput["seed"] if hasattr(config, "workerinput") else config.getoption("hypothesis_seed")
        config.stash[SEED] = profiles.seed_of(wish)
    except (LookupError, ValueError) as error:
        raise pytest.UsageError(str(error)) from error
    config.option.hypothesis_seed = None  # see profiles.give_seed
    deadline.end_at(config.getoption("--until"))
    if hasattr(config, "workerinput"):
        config.stash[DIRECTORY] = Path(config.workerinput["directory"])
    else:
        config.stash[DIRECTORY] = Path(tempfile.mkdtemp(prefix="mergelaws-"))
    config.stash[NOTES] = limit.Notes(config.stash[DIRECTORY] / "notes")
    for_progress = config.stash[DIRECTORY] / "progress"
    for_progress.mkdir(exist_ok=True)
    progress.note_in(for_progress)


def pytest_report_header(config: pytest.Config) -> list[str]:
    profile = config.getoption("hypothesis_profile", default=None) or "quick"
    versions = f"torch {torch.__version__}, triton {triton.__version__}, hypothesis {hypothesis.__version__}"
    implementation = subject.current()
    return [
        f"mergelaws: implementation {implementation.name} on {subject.device()}; our kernels on {mergelaws.backend.describe()}",
        f"mergelaws: {versions}, mpmath {mpmath.__version__} ({mpmath.libmp.BACKEND}), python {sys.version.split()[0]}",
        f"mergelaws: profile {profile}, seed {config.stash[SEED]}",
    ]


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    wanted = set(config.getoption("--law"))
    kept: list[pytest.Item] = []
    dropped: list[pytest.Item] = []
    for item in items:
        mark = item.get_closest_marker("law")
        if mark is not None:
            item.extra_keyword_matches.add(f"law{mark.args[0]}")
        (kept if not wanted or (mark is not None and mark.args[0] in wanted) else dropped).append(item)
    items[:] = kept
    if config.getoption("--until"):  # what is left out at the end is not the same every time
        random.Random(config.stash[SEED]).shuffle(items)  # noqa: S311  # no secret; all processes want the same order
    drawn: list[Any] = [item.obj for item in items if hasattr(getattr(item, "obj", None), "hypothesis")]  # type: ignore[attr-defined]
    profiles.give_seed(drawn, config.stash[SEED])
    for item in items:
        why = known.reason(_name(item.nodeid), _known_failures(config))
        if why and item.get_closest_marker("law") is not None:
            item.add_marker(pytest.mark.xfail(reason=why, strict=False))
            profiles.without_shrinking(item.obj)  # type: ignore[attr-defined]
    if dropped:
        config.hook.pytest_deselected(items=dropped)


def _known_failures(config: pytest.Config) -> tuple[tuple[str, str], ...]:
    return () if config.getoption("--ignore-known") else subject.current().known_failures


def _name(nodeid: str) -> str:
    """The property's name, with its parameters."""
    return nodeid.split("::", 1)[-1]


def pytest_runtest_setup(item: pytest.Item) -> None:
    mark = item.get_closest_marker("law")
    if mark is None:
        return
    record.reset()
    deadline.property_begins()
    if deadline.is_over():
        pytest.skip("the time was up")
    missing = subject.missing(**mark.kwargs)
    if missing:
        pytest.skip(f"{subject.current().name} does not offer {missing}")
    hung = item.config.stash[NOTES].has_hung(mark.args[0])
    if hung:
        pytest.skip(f"law {mark.args[0]} has its verdict: {hung}")
    item.stash[NOTE] = item.config.stash[NOTES].at(item.nodeid, {"law": mark.args[0], "property": _name(item.nodeid)})


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[Any]:
    mark = item.get_closest_marker("law")
    if mark is None:
        return (yield)
    seconds = limit.in_force(item.config.getoption("--time-limit"), item.config.stash[NOTES])
    try:
        with limit.limited(seconds, item.stash[NOTE], watchdog=hasattr(item.config, "workerinput")):
            return (yield)
    except deadline.TimeIsUp:
        return None  # a property with fewer examples than it was to have, all of them right
    except limit.TimeLimit as error:
        item.config.stash[NOTES].hung(mark.args[0], f"{_name(item.nodeid)} did not come back: {error}")
        raise


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Generator[None, Any, Any]:
    report = yield
    mark = item.get_closest_marker("law")
    if mark is None or (report.when != "call" and report.outcome == "passed"):
        return report
    line = _reproduce(item.config, item.nodeid, mark.args[0])
    told: dict[str, Any] = {
        "law": mark.args[0],
        "property": _name(item.nodeid),
        "outcome": _outcome(report),
        "seconds": round(report.duration, 3),
        "reason": _why_skipped(report),
        "finding": None,
        "record": (record.Record() if _outcome(report) == "skipped" else record.current()).as_plain(),
    }
    if told["outcome"] in ("failed", "known") and call.excinfo is not None:
        found = finding.found(mark.args[0], _name(item.nodeid), call.excinfo.value)
        told["finding"] = found.as_plain(item.config.getoption("--impl"), subject.current(), line)
        told["reason"] = getattr(report, "wasxfail", "")
    if report.failed:
        report.sections.append(("reproduce", line))
        _end_if_the_device_is_lost(item, told)
    report.mergelaws = told
    return report


def _why_skipped(report: Any) -> str:
    words = str(report.longrepr[2]).removeprefix("Skipped: ") if isinstance(report.longrepr, tuple) else ""
    return (
        "nothing to replay: nothing failed before" if words.startswith("Hypothesis has been told to run no") else words
    )


def _outcome(report: Any) -> str:
    if report.outcome == "skipped" and hasattr(report, "wasxfail"):
        return "known"
    return str(report.outcome)


def _reproduce(config: pytest.Config, nodeid: str, law: int) -> str:
    seed, target = config.stash[SEED], config.getoption("--impl")
    if config.option.tbstyle == "no":  # `mergelaws verify`, perhaps without a clone
        return f"mergelaws verify {target} --law {law} --seed {seed}"
    return f"python -m pytest '{nodeid}' --impl {target} --hypothesis-seed={seed}"


def _end_if_the_device_is_lost(item: pytest.Item, told: dict[str, Any]) -> None:
    """A CUDA error that stays makes every later call of the process fail: the controller goes on with another process."""
    if not hasattr(item.config, "workerinput") or not torch.cuda.is_initialized():
        return
    try:
        torch.cuda.synchronize()
    except Exception as error:  # whatever it is called, the device no longer answers
        told["finding"]["message"] += f"\nthe device no longer answers: {error}".splitlines()[0]
        item.config.stash[NOTES].at(item.nodeid, told)
        os._exit(1)


@pytest.hookimpl(optionalhook=True)
def pytest_handlecrashitem(crashitem: str, report: Any, sched: Any) -> None:
    """pytest-xdist, on the controller, after a worker ended within a property."""
    config = sched.config
    note, silent = config.stash[NOTES].left_at(crashitem)
    if "law" not in note:
        return
    law, name = note["law"], note["property"]
    if "finding" not in note:
        seconds = limit.in_force(config.getoption("--time-limit"), config.stash[NOTES])
        hung = 0.0 < limit.HARDER * seconds <= silent + 1.0
        how = (
            f"did not come back: no progress in {limit.HARDER * seconds:g} s, and no interrupt helped"
            if hung
            else "ended the process"
        )
        if hung:
            config.stash[NOTES].hung(law, f"{name} {how}")
        found = finding.Finding(law, name, "hung" if hung else "crashed", f"{name} {how}")
        told = found.as_plain(config.getoption("--impl"), subject.current(), _reproduce(config, crashitem, law))
        note = {
            "outcome": "failed",
            "seconds": 0.0,
            "reason": "",
            "finding": told,
            "record": record.Record().as_plain(),
            **note,
        }
    why = known.reason(name, _known_failures(config))
    if why:
        report.outcome, report.wasxfail, note["outcome"], note["reason"] = "skipped", why, "known", why
    report.longrepr = note["finding"]["message"]
    report.mergelaws = note


def pytest_runtest_logreport(report: Any) -> None:
    if hasattr(report, "mergelaws"):
        _gathered.add(dict(report.mergelaws))


_gathered = Gathered()


def pytest_sessionstart(session: pytest.Session) -> None:
    config = session.config
    reporter = config.pluginmanager.getplugin("terminalreporter")
    if hasattr(config, "workerinput") or reporter is None:
        return
    directory = config.stash[DIRECTORY] / "progress"
    config.stash[TELLER] = progress.Teller(directory, lambda line: reporter.write_line(f"\n  {line}"))
    config.stash[TELLER].start()


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """pytest-xdist, on the controller, before a worker starts."""
    node.workerinput["directory"] = str(node.config.stash[DIRECTORY])
    node.workerinput["seed"] = str(node.config.stash[SEED])


def pytest_sessionfinish(session: pytest.Session) -> None:
    config = session.config
    if hasattr(config, "workerinput"):
        return
    if TELLER in config.stash:
        config.stash[TELLER].stop()
    entries = known.outlived(_known_failures(config), _gathered.by_name)
    config.stash[ERRORS] = [f"known failure {entry} no longer fails: take it out" for entry in entries]
    if config.stash[ERRORS] and session.exitstatus == pytest.ExitCode.OK:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED
    told = _report(config)
    if config.getoption("--laws-json"):
        page.write_json(told, Path(config.getoption("--laws-json")))
    if config.getoption("--laws-html"):
        page.write_html(told, Path(config.getoption("--laws-html")))


def pytest_unconfigure(config: pytest.Config) -> None:
    if not hasattr(config, "workerinput") and DIRECTORY in config.stash:
        shutil.rmtree(config.stash[DIRECTORY], ignore_errors=True)


def _versions() -> dict[str, str]:
    return {
        "mergelaws": mergelaws.__version__,
        "python": sys.version.split()[0],
        "torch": torch.__version__,
        "triton": triton.__version__,
        "hypothesis": hypothesis.__version__,
        "mpmath": f"{mpmath.__version__} ({mpmath.libmp.BACKEND})",
    }


def _package(target: str) -> dict[str, str]:
    """The version of the package that an adapter calls, where its file names one."""
    name = getattr(sys.modules.get(f"implementations.{target}"), "PACKAGE", "")
    return {name: importlib.metadata.version(name)} if name else {}


def _report(config: pytest.Config) -> dict[str, Any]:
    """All that the report says, as lists, dicts, strings and numbers."""
    implementation = subject.current()
    return {
        "target": config.getoption("--impl"),
        "implementation": implementation.name,
        "date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d %H:%M UTC"),
        "profile": config.getoption("hypothesis_profile", default=None) or "quick",
        "seed": str(config.stash[SEED]),
        "device": _device(),
        "versions": _versions() | _package(config.getoption("--impl")),
        "operations": list(implementation.operations),
        "not_claimed": implementation.narrow_claims(),
        "differs": [list(pair) for pair in implementation.differs],
        "errors": config.stash[ERRORS],
        **_gathered.as_plain(implementation.name),
    }


def _device() -> str:
    return mergelaws.backend.describe() if subject.device() == "cuda" else "CPU"


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    if not _gathered.told:
        return
    name = subject.current().name
    colour = bool(terminalreporter.hasmarkup)
    width = shutil.get_terminal_size().columns
    if config.option.tbstyle == "no":
        for law, words in table.findings(_gathered.findings("failed")):
            terminalreporter.section(f"law {law}, {LAWS[law]}", sep="-", red=True)
            terminalreporter.write_line(words)
    terminalreporter.section(f"the laws, for {name}")
    only = set(config.getoption("--law"))
    terminalreporter.write(table.printed(table.law_table(_gathered.record, _gathered.outcomes, only), width, colour))
    terminalreporter.write(table.printed(table.ratio_table(_gathered.record), width, colour))
    for reason, count in _gathered.not_checked(name).most_common():
        terminalreporter.write_line(f"not checked ({count}): {reason}")
    for words in subject.current().narrow_claims():
        terminalreporter.write_line(f"not claimed: {words}")
    for words in config.stash[ERRORS]:
        terminalreporter.write_line(f"error: {words}", red=True)
