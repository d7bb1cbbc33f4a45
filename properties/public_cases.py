"""Inputs distilled from public reports about merging, with their right values (public_cases.json)."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from hypothesis import example

from properties.cases import Problem, States

Test = TypeVar("Test", bound=Callable[..., None])

_WORDS = {"nan": math.nan, "inf": math.inf, "-inf": -math.inf}


@dataclass(frozen=True)
class PublicCase:
    """One report: its states, the operation, and the exact merge to 20 digits, NaN under the policy of semantics.md."""

    name: str
    source: str
    fault: str
    operation: str
    states: States
    v: str
    s: str


def _number(word: Any) -> float:
    return _WORDS[word] if isinstance(word, str) else float(word)


def _case(entry: dict[str, Any]) -> PublicCase:
    values, lses = zip(*entry["states"], strict=True)
    states = States(
        dtype=entry["dtype"],
        base=entry["lse_base"],
        count=len(lses),
        dim=3,
        s=tuple(_number(word) for word in lses),
        v=tuple(_number(word) for word in values),
        garbage="as given",
    )
    right = entry["right"]
    return PublicCase(
        entry["id"], entry["source"], entry["fault"], entry["operation"], states, str(right["v"]), str(right["s"])
    )


_FILE = json.loads((Path(__file__).parent / "public_cases.json").read_text())

NUMERIC = tuple(_case(entry) for entry in _FILE["numeric"])

# Reports that no list of numbers can show: each is a test of its own.
STRUCTURAL_TESTS = {
    "in-place-s-dtype": "test_interface.test_a_wrong_argument_is_named_and_nothing_is_written",
    "mixed-v-dtypes": "test_interface.test_a_wrong_argument_is_named_and_nothing_is_written",
    "mask-keeps-rows": "test_memory.test_masked_rows_keep_their_bits",
    "transposed-s": "test_layout.test_strides_of_two_states_do_not_matter",
    "padded-v": "test_layout.test_strides_of_two_states_do_not_matter",
    "batch-vs-alone": "test_locality.test_a_row_alone_has_the_bits_it_has_in_a_batch",
    "heads-65-to-128": "test_sizes.test_any_number_of_heads",
    "rows-65536": "test_sizes.test_more_rows_than_a_grid_dimension",
    "offset-2-31": "test_sizes.test_offsets_past_the_32_bit_range",
    "zero-rows": "test_sizes.test_nothing_gives_nothing",
    "odd-head-dims": "test_sizes.test_any_head_size",
    "graph-replay": "test_determinism.test_a_replayed_graph_follows_its_inputs",
    "empty-segments": "test_sizes.test_empty_segments_are_empty_states",
    "unreferenced-rows": "test_exactness.test_segments_merge_within_the_bound",
}


def public_examples(test: Test) -> Test:
    """Gives a property of one `problem` every numeric report as an explicit example, with its source."""
    for case in reversed(NUMERIC):
        problem = Problem(case.operation, case.states)
        test = example(problem=problem).via(f"{case.name}, {case.source}: {case.fault}")(test)
    return test
