"""The suite's power: every mutant dies, every right implementation lives, every law kills."""

from __future__ import annotations

import os

from implementations.mutants import MUTANTS
from selftest.killing import CORPUS, Verdict, judge_all, matrix


def test_every_mutant_dies_every_right_implementation_lives_and_every_law_kills() -> None:
    """One test, since the corpus is judged once: minutes, in as many processes as there are cores."""
    judgements = judge_all(list(CORPUS), os.cpu_count() or 1)
    verdict = Verdict(judgements[: len(MUTANTS)], judgements[len(MUTANTS) :])
    assert len(verdict.mutants) >= 60
    assert len(verdict.variants) >= 8
    assert not verdict.alive, matrix(verdict)
    assert not verdict.wronged, [(one.name, one.kills) for one in verdict.wronged]
    assert not verdict.idle, f"laws {verdict.idle} kill nothing\n{matrix(verdict)}"
