"""The suite's power: every mutant dies, every right implementation lives, every law kills."""

from __future__ import annotations

import os

import pytest

from implementations.mutants import MUTANTS
from implementations.variants import VARIANTS
from selftest.killing import CORPUS, Verdict, judge_all, matrix


@pytest.fixture(scope="module")
def verdict() -> Verdict:
    """The corpus, judged once."""
    judgements = judge_all(list(CORPUS), os.cpu_count() or 1)
    return Verdict(judgements[: len(MUTANTS)], judgements[len(MUTANTS) :])


@pytest.mark.xdist_group("mutants")
def test_every_mutant_dies(verdict: Verdict) -> None:
    """No wrong implementation gets past the laws."""
    assert not verdict.alive, matrix(verdict)
    assert len(verdict.mutants) >= 60


@pytest.mark.xdist_group("mutants")
def test_every_right_implementation_lives(verdict: Verdict) -> None:
    """No law is broken by an implementation that is right, however different."""
    assert not verdict.wronged, [(one.name, one.kills) for one in verdict.wronged]
    assert len(verdict.variants) >= len(VARIANTS) >= 8


@pytest.mark.xdist_group("mutants")
def test_every_law_kills(verdict: Verdict) -> None:
    """A law that kills nothing is decoration."""
    assert not verdict.idle, matrix(verdict)
