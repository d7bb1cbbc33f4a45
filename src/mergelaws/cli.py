"""The command line: `mergelaws verify TARGET` and `mergelaws list`."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from pathlib import Path
from typing import Any, NoReturn

import click

from mergelaws import suite
from mergelaws.implementation import DTYPES

HOLDS, BROKEN, UNCALLABLE = 0, 1, 2
_PATIENCE = 120.0  # seconds for importing a target


@click.group()
@click.version_option(package_name="mergelaws")
def main() -> None:
    """Holds implementations of merging attention states to its laws."""


@main.command()
@click.argument("target")
@click.option("--profile", type=click.Choice(["quick", "nightly", "replay"]), default="quick", show_default=True,
              help="50 examples a property, 5,000, or what failed before.")  # fmt: skip
@click.option("--law", "laws", type=int, multiple=True, metavar="N", help="Only law N; may be given again.")
@click.option("--json", "json_file", type=click.Path(path_type=Path), metavar="FILE", help="Write the report as JSON.")
@click.option(
    "--html", "html_file", type=click.Path(path_type=Path), metavar="FILE", help="Write the report as a page."
)
@click.option("--seed", type=int, metavar="N", help="Draw the cases of an earlier run.")
@click.option("--ignore-known", is_flag=True, help="Judge as if no failure were known, each with its plainest input.")
@click.option("--limit", type=click.FloatRange(min=1.0), default=60.0, show_default=True, metavar="SECONDS",
              help="End a property that makes no progress for so long.")  # fmt: skip
@click.option("--processes", type=click.IntRange(min=1), default=min(os.cpu_count() or 1, 8), show_default=True,
              metavar="N", help="Processes that share the properties.")  # fmt: skip
def verify(
    target: str,
    profile: str,
    laws: tuple[int, ...],
    json_file: Path | None,
    html_file: Path | None,
    seed: int | None,
    ignore_known: bool,
    limit: float,
    processes: int,
) -> None:
    """Hold TARGET to the laws.

    TARGET is a name that `mergelaws list` shows, mutants:NAME, variants:NAME, package.module:attribute or
    path/to/file.py:attribute, where the attribute is a mergelaws.Implementation or a function
    (v_a, s_a, v_b, s_b) -> (v, s).

    Exit status 0: every claimed law holds. 1: some law is broken. 2: TARGET cannot be loaded or called.
    """
    _probe(target)
    place = suite.enter()
    arguments = suite.pytest_arguments(place, target, processes, laws)
    arguments += [f"--hypothesis-profile={profile}", f"--time-limit={limit}"]
    arguments += ["--ignore-known"] if ignore_known else []
    arguments += [f"--laws-json={json_file.resolve()}"] if json_file else []
    arguments += [f"--laws-html={html_file.resolve()}"] if html_file else []
    arguments += [f"--hypothesis-seed={seed}"] if seed is not None else []
    import pytest  # noqa: PLC0415  # after sys.path was set: pytest-xdist hands it on to its processes

    status = int(pytest.main(arguments))
    sys.stdout.flush()
    sys.exit({0: HOLDS, 1: BROKEN}.get(status, UNCALLABLE))


@main.command(name="nightly")
@click.argument("target", default="ours")
@click.option("--minutes", type=click.FloatRange(min=0.1), default=60.0, show_default=True, metavar="N",
              help="How long; a property that is failing then is still made smaller.")  # fmt: skip
@click.option("--law", "laws", type=int, multiple=True, metavar="N", help="Only law N; may be given again.")
@click.option("--processes", type=click.IntRange(min=1), default=os.cpu_count() or 1, show_default=True, metavar="N",
              help="Processes that share the properties.")  # fmt: skip
def fuzz(target: str, minutes: float, laws: tuple[int, ...], processes: int) -> None:
    """Hold TARGET to the laws for so many minutes.

    What failed before comes first, then rounds with fresh seeds, each with twice the examples of the one before. Failures
    are kept in the example database (MERGELAWS_DATABASE, or .hypothesis/ here) as they are found.

    Exit status 0: nothing failed. 1: something did. 2: TARGET cannot be loaded or called.
    """
    from mergelaws import nightly  # noqa: PLC0415  # what it needs is not needed by the other commands

    _probe(target)
    try:
        night = nightly.run(target, minutes, processes, laws, lambda words: click.secho(f"nightly: {words}", bold=True))
    except RuntimeError as error:
        _fail(str(error))
    before, file = nightly.records(target, night)
    click.echo(nightly.summary(target, night, before))
    click.echo(f"records: {file}")
    over = any(ratio > 1.0 for ratio in night.highest.values())
    sys.exit(BROKEN if night.failures or night.errors or over else HOLDS)


@main.command(name="fuzz")
@click.option("--calls", type=click.IntRange(min=1), default=100_000, show_default=True, metavar="N", help="How many.")
@click.option("--seed", type=int, metavar="N", help="Make the calls of an earlier run.")
@click.option("--processes", type=click.IntRange(min=1), default=os.cpu_count() or 1, show_default=True, metavar="N",
              help="Processes that share the calls.")  # fmt: skip
def fuzz_interface(calls: int, seed: int | None, processes: int) -> None:
    """Call the public operations with anything at all.

    Random shapes, dtypes, devices, strides, types and values; each call gives a result or an error that names an argument,
    and writes nothing beside its outputs.

    Exit status 0: so it is. 1: a call crashed, hung, wrote beside its outputs or was answered unclearly.
    """
    from rich.progress import Progress  # noqa: PLC0415

    from mergelaws import fuzz  # noqa: PLC0415

    seed = random.SystemRandom().randrange(2**32) if seed is None else seed
    with Progress() as progress:
        task = progress.add_task(f"calls of seed {seed}", total=calls)
        told = fuzz.run(calls, seed, processes, tell=lambda so_far: progress.update(task, completed=so_far.calls))
    click.echo(
        f"seed {seed}: {told.calls:,} calls: " + ", ".join(f"{n:,} {what}" for what, n in told.counts.most_common())
    )
    for number, words in told.faults[:20]:
        click.echo(f"call {number}: {words}")
    sys.exit(BROKEN if told.faults else HOLDS)


class _Count(click.ParamType):  # type: ignore[type-arg]  # generic in the newest click alone
    name = "count"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        base, _, power = str(value).partition("^")
        try:
            count: int = int(base.replace("_", "")) ** int(power or 1)
        except ValueError:
            count = 0
        if not 1 <= count <= 2**32 or count & (count - 1):
            self.fail(f"{value!r} is no count; it must be a power of two from 1 to 2^32, such as 2^24", param, ctx)
        return count


@main.command(name="sweep")
@click.argument("mode", type=click.Choice(["gaps", "pairs", "random", "climb"]))
@click.argument("target", default="ours")
@click.option("--count", type=_Count(), default="2^32", show_default=True, metavar="N",
              help="gaps, pairs: ask one of each of N even stretches of all 2^32; 2^24 is written so.")  # fmt: skip
@click.option("--minutes", type=click.FloatRange(min=0.0, min_open=True), default=1.0, show_default=True, metavar="N",
              help="random, climb: how long, in all.")  # fmt: skip
@click.option("--dtype", type=click.Choice(DTYPES), default="float16", show_default=True, help="gaps: of v.")
@click.option(
    "--base", type=click.Choice(["2", "e"]), default=None, help="gaps, pairs: of s; default: what TARGET takes."
)
@click.option("--s-a", type=float, default=0.0, show_default=True, metavar="S", help="gaps: the s of the other state.")
@click.option("--gap", "gaps", type=float, multiple=True, default=(0.0, -1.5, -11.0), show_default=True, metavar="X",
              help="pairs: s_b - s_a; may be given again.")  # fmt: skip
@click.option(
    "--seed", type=int, default=0, show_default=True, metavar="N", help="What is drawn where not all is asked."
)
@click.option("--fresh", is_flag=True, help="Begin anew, not where a run that was killed stood.")
@click.option("--records/--no-records", default=True, show_default=True, help="Whether to write records that fall.")
def sweep_rows(
    mode: str, target: str, count: int, minutes: float, dtype: str, base: str | None, s_a: float,
    gaps: tuple[float, ...], seed: int, fresh: bool, records: bool,
) -> None:  # fmt: skip
    r"""Hold TARGET to the error bound in bulk: law 1 of millions of rows a second.

    \b
    gaps    every float32 as s_b beside one s_a, through merge_state
    pairs   every pair of float16 v, at a few weights, through merge_state
    random  rows of every regime, through every operation
    climb   the search for the rows that come closest to the bound

    A run that was killed is resumed by the same command. A row over the bound leaves a patch for `mergelaws regressions`.

    Exit status 0: no row is over the bound. 1: some are. 2: TARGET cannot be loaded or called, or does not take that.
    """
    from mergelaws.sweep import command  # noqa: PLC0415  # imports torch

    _probe(target)
    place = suite.enter()
    try:
        plan = command.plan(mode, target, count, minutes, dtype, base, s_a, gaps, seed)
    except ValueError as error:
        _fail(str(error))
    over = command.run(plan, place, fresh, records)
    sys.exit(BROKEN if over else HOLDS)


@main.command(name="regressions")
@click.option("--apply", "number", type=int, metavar="N", help="Add the examples of patch N to the properties.")
@click.option("--reason", metavar="WORDS", help="Why they are kept; with --apply.")
@click.option("--link", metavar="URL", help="Where that was found out; with --apply.")
@click.option("--check", "name", metavar="PROPERTY", help="Ask the examples of a property of --broken and --fixed.")
@click.option("--broken", metavar="TARGET", help="What it must fail on; with --check.")
@click.option(
    "--fixed", metavar="TARGET", default="ours", show_default=True, help="What it must pass on; with --check."
)
def keep(
    number: int | None, reason: str | None, link: str | None, name: str | None, broken: str | None, fixed: str
) -> None:
    """List the failures that could become regressions, keep one, or check one that is kept.

    Without options: the patches that failing runs left here, numbered, and the examples that are kept already.

    Exit status 0: done, or the check holds. 1: the check does not hold. 2: it cannot be done.
    """
    from mergelaws import regressions  # noqa: PLC0415  # libcst is not needed by the other commands

    place, patches = suite.enter(), regressions.found()
    if number is not None:
        if not 1 <= number <= len(patches):
            _fail(f"--apply is {number}; there are {len(patches)} patches in {regressions.PATCHES}")
        patch = patches[number - 1]
        reason = click.prompt("why is it kept") if reason is None else reason
        link = click.prompt("a link") if link is None else link
        try:
            regressions.apply(patch, place, reason, link)
        except ValueError as error:
            _fail(str(error))
        click.echo(f"kept: {', '.join(patch.properties)} in {', '.join(patch.sources)}; review it with git diff")
    elif name is not None:
        if broken is None:
            _fail("--check needs --broken TARGET, which the property must fail on")
        try:
            (red, _), (still_red, told) = (regressions.fails(place, name, target) for target in (broken, fixed))
        except (LookupError, RuntimeError) as error:
            _fail(str(error))
        click.echo(
            f"{name} {'fails' if red else 'passes'} on {broken}, and {'fails' if still_red else 'passes'} on {fixed}"
        )
        click.echo(told if still_red else "", nl=still_red)
        sys.exit(HOLDS if red and not still_red else BROKEN)
    else:
        for at, patch in enumerate(patches, 1):
            click.echo(f"{at}  {patch.file.name}")
            for test, case in zip(patch.properties, patch.examples, strict=False):
                click.echo(f"   {test}: {case}")
        for test, words in regressions.kept(place):
            click.echo(f"kept  {test}: {words}")


def _probe(target: str) -> None:
    """Ends with status 2 if the target cannot be loaded or called. One that hangs, or ends the process, is for the laws."""
    from mergelaws.probe import LOADED  # noqa: PLC0415  # imports torch

    path = os.pathsep.join([str(Path.cwd()), os.environ.get("PYTHONPATH", "")]).rstrip(os.pathsep)
    command = [sys.executable, "-m", "mergelaws.probe", target]
    try:
        done = subprocess.run(  # noqa: S603  # this very Python
            command,
            capture_output=True,
            text=True,
            timeout=_PATIENCE,
            check=False,
            env={**os.environ, "PYTHONPATH": path},
        )
    except subprocess.TimeoutExpired as stopped:
        if LOADED in (stopped.stdout or b"").decode():
            return
        _fail(f"{target} cannot be loaded: its import did not come back in {_PATIENCE:g} s")
    if done.returncode == UNCALLABLE:
        _fail(done.stderr.strip())
    if LOADED not in done.stdout:
        _fail(f"{target} cannot be loaded: its import ended the process with {done.returncode}\n{done.stderr.strip()}")


def _fail(words: str) -> NoReturn:
    click.echo(words, err=True)
    sys.exit(UNCALLABLE)


@main.command(name="list")
def list_known() -> None:
    """Show the known implementations: what each offers and takes, or why it is not here."""
    suite.enter()
    import implementations  # noqa: PLC0415

    for name in implementations.known():
        try:
            found = implementations.find(name)
        except Exception as error:  # a broken installation may raise anything
            told = str(error).strip().split("\n")[0]
            words = told if isinstance(error, LookupError) else f"{type(error).__name__}: {told}"
            click.echo(f"{name:<22} not installed: {words}")
        else:
            where = " and ".join(found.devices)
            click.echo(f"{name:<22} installed: {', '.join(found.operations)}; on {where}")


if __name__ == "__main__":
    main()
