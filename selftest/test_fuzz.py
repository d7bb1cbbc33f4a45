"""`mergelaws fuzz`: calls are the same for a seed, faults of every kind are seen, and what comes after them is still made."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
import torch

import mergelaws
from mergelaws import fuzz, random_calls

SABOTAGED = """
import os, sys, time
from pathlib import Path
from mergelaws import random_calls

random_calls.call_of = lambda seed, number: number
random_calls.outcome = lambda n: os._exit(9) if n == 3 else time.sleep(99) if n == 6 else "result"
seed, first, stop, mark = sys.argv[1:]
random_calls.main(int(seed), int(first), int(stop), Path(mark))
"""


@pytest.mark.filterwarnings("ignore:ComplexHalf")
def test_a_thousand_calls_are_answered() -> None:
    """With a result or a refusal, and many of both."""
    told = Counter(random_calls.outcome(random_calls.call_of(7, number)) for number in range(1000))
    assert set(told) == {"result", "refused"} and min(told.values()) > 200, told


def test_the_calls_of_a_seed_are_always_the_same() -> None:
    """Operation, keywords, and the types and shapes of the arguments."""
    for number in range(50):
        first, second = (_spelled(random_calls.call_of(3, number)) for _ in range(2))
        assert first == second


def _spelled(call: random_calls.Call) -> list[str]:
    operation, arguments, keywords = call
    return [operation, repr(keywords), *(repr(getattr(value, "shape", type(value))) for value in arguments)]


@pytest.mark.parametrize(
    ("fault", "says"),
    (("read-only error", "unclear: RuntimeError"), ("unnamed", "unclear: ValueError"), ("input", "wrote to an input"),
     ("beside", "wrote beside its outputs"), ("dtype", "returned another dtype")),
)  # fmt: skip
def test_every_fault_of_an_answer_is_seen(fault: str, says: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """An exception of another kind, an error without a name, a write to an input or beside an output, another dtype."""

    def wrong(v_a: Any, s_a: Any, v_b: Any, s_b: Any) -> Any:
        v, s = torch.empty_like(v_a), torch.empty_like(s_a)
        if fault == "read-only error":
            raise RuntimeError("no")
        if fault == "unnamed":
            raise ValueError("it must not be")
        if fault == "input":
            s_a.fill_(5.0)
        if fault == "beside":
            s.as_strided((1,), (1,), s.storage_offset() + s.numel()).fill_(1.0)
        return v, s.double() if fault == "dtype" else s

    monkeypatch.setattr(mergelaws, "merge_state", wrong)
    v, s = (
        torch.ones(2, 2, 2, device=mergelaws.backend.DEVICE_TYPE),
        torch.ones(2, 2, device=mergelaws.backend.DEVICE_TYPE),
    )
    assert random_calls.outcome(("merge_state", [v, s, v, s], {})).startswith(says)


def test_calls_that_crash_or_hang_are_found_and_the_rest_is_made() -> None:
    """In the process that makes the calls, call 3 ends it and call 6 does not come back."""
    told = fuzz.run(10, 1, 1, patience=2.0, caller=("-c", SABOTAGED))
    assert told.faults == [(3, "ended the process with 9"), (6, "did not come back in 2 s")]
    assert told.calls == 10
