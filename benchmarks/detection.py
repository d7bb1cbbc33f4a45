"""How the field tests such kernels today, tried on the same wrong implementations.

Each style is a public library's own test of merging: random normal inputs at an ordinary shape and a fixed tolerance, or
FlashAttention's rule that the error may be twice that of rounding the right result. A mutant is killed if it raises,
returns another shape or dtype, or leaves the tolerance. Rows and heads are fewer than in the originals, so that the whole
takes minutes on a CPU: every row is as random as the next. The styles get all four operations in both bases, which is
more than any one of the libraries tests.

    python -m benchmarks.detection            prints a table, writes docs/detection.json
"""

from __future__ import annotations

import functools
import itertools
import json
import math
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import torch
from rich.console import Console
from rich.table import Table
from torch import Tensor

from implementations.mutants import MUTANTS, fresh
from implementations.torch_reference import implementation as reference
from implementations.variants import VARIANTS
from mergelaws.implementation import Implementation

State = tuple[Tensor, Tensor]
Judge = Callable[[State, State], bool]
REPORT = Path(__file__).resolve().parent.parent / "docs" / "detection.json"


@dataclass(frozen=True)
class Style:
    """A way of testing: its name, who tests so, and whether an implementation passes."""

    name: str
    who: str
    passes: Callable[[Implementation], bool]


def merged(v: Tensor, s: Tensor, base: int | str) -> State:
    """The reference that the libraries write: N states in float32, v [S, N, H, D], s [S, N, H] -> float32 [S, H, D], [S, H]."""
    scale = 1.0 if base == "e" else math.log(2.0)
    lse = torch.logsumexp(s * scale, dim=1)
    weights = (s * scale - lse[:, None]).exp().nan_to_num(0.0)
    return (weights[..., None] * v.float()).sum(dim=1), lse / scale


def fixed(tolerance: float, relative: float) -> Judge:
    """Within tolerance + relative |right| everywhere, v and s alike."""

    def close(got: State, right: State) -> bool:
        return all(_close(x, y, tolerance, relative) for x, y in zip(got, right, strict=True))

    return close


def twice_the_rounding(got: State, right: State) -> bool:
    """The largest error of v is at most twice that of the right v rounded to its dtype; s within 1e-5 + 1e-5 |s|."""
    rounded = right[0].to(got[0].dtype).float()
    error, rounding = ((v - right[0]).abs().max() for v in (got[0].float(), rounded))
    good_v = bool(error <= 2.0 * rounding) or _close(got[0], rounded, 1e-5, 1e-5)
    return good_v and _close(got[1], right[1], 1e-5, 1e-5)


def _close(got: Tensor, right: Tensor, tolerance: float, relative: float) -> bool:
    error = (got.float() - right).abs()
    near = error.isfinite() & (error <= tolerance + relative * right.abs())
    return bool((near | (got.float() == right)).all())


def accepted(got: State, right: State, dtype: torch.dtype, judge: Judge) -> bool:
    """The right dtypes and shapes, and what the judge says."""
    if (got[0].dtype, got[1].dtype) != (dtype, torch.float32) or (got[0].shape, got[1].shape) != (
        right[0].shape,
        right[1].shape,
    ):
        return False
    return judge(got, right)


@dataclass(frozen=True)
class Inputs:
    """What FlashInfer's tests draw: randn v and s, contiguous; and the right results."""

    v: Tensor
    s: Tensor
    right: State
    indptr: Tensor | None = None


@functools.cache
def inputs(dtype: torch.dtype, base: int | str) -> tuple[Inputs, ...]:
    """2, 8 and 100 states, and ragged ones of 1 to 99."""
    random = torch.Generator().manual_seed(42)
    drawn = []
    for rows, count in ((256, 2), (64, 8), (8, 100)):
        v = torch.randn(rows, count, 8, 128, generator=random).to(dtype)
        s = torch.randn(rows, count, 8, generator=random)
        drawn.append(Inputs(v, s, merged(v, s, base)))
    lengths = torch.randint(1, 100, (8,), generator=random)
    ends = [0, *lengths.cumsum(0).tolist()]
    v = torch.randn(ends[-1], 8, 128, generator=random).to(dtype)
    s = torch.randn(ends[-1], 8, generator=random)
    parts = [merged(v[None, a:b], s[None, a:b], base) for a, b in zip(ends, ends[1:], strict=False)]
    right = torch.cat([part[0] for part in parts]), torch.cat([part[1] for part in parts])
    return (*drawn, Inputs(v, s, right, torch.tensor(ends, dtype=torch.int32)))


def outcomes(subject: Implementation, dtype: torch.dtype, base: int | str) -> Iterator[tuple[State, State]]:
    """(got, right) of every operation; in place with no mask, a full one, an empty one, and a random half."""
    keywords = {"lse_base": base} if subject.lse_base == "either" else {}
    two, eight, hundred, ragged = inputs(dtype, base)
    (v_a, v_b), (s_a, s_b) = ([part.contiguous() for part in x.unbind(1)] for x in (two.v, two.s))
    if subject.merge_state:
        yield subject.merge_state(v_a.clone(), s_a.clone(), v_b.clone(), s_b.clone(), **keywords), two.right
    if subject.merge_state_in_place:
        rows = len(v_a)
        half = torch.rand(rows, generator=torch.Generator().manual_seed(43)) < 0.5
        for mask in (None, torch.ones(rows).bool(), torch.zeros(rows).bool(), half):
            got = v_a.clone(), s_a.clone()
            subject.merge_state_in_place(*got, v_b.clone(), s_b.clone(), mask, **keywords)
            written = torch.ones(rows).bool() if mask is None else mask
            wanted_v = torch.where(written[:, None, None], two.right[0], v_a.float())
            yield got, (wanted_v, torch.where(written[:, None], two.right[1], s_a))
    if subject.merge_states:
        for many in (eight, hundred):
            yield subject.merge_states(many.v.clone(), many.s.clone(), **keywords), many.right
    if subject.variable_length_merge_states:
        merge = subject.variable_length_merge_states
        yield merge(ragged.v.clone(), ragged.s.clone(), ragged.indptr, **keywords), ragged.right


def passes_randn(subject: Implementation, dtypes: dict[torch.dtype, Judge]) -> bool:
    """Whether every operation in every base and dtype is accepted."""
    bases = (2, "e") if subject.lse_base == "either" else (subject.lse_base,)
    return all(
        accepted(got, right, dtype, judge)
        for dtype, judge in dtypes.items()
        for base in bases
        for got, right in outcomes(subject, dtype, base)
    )


@functools.cache
def combine_inputs() -> tuple[tuple[torch.dtype, Inputs], ...]:
    """What FlashAttention's test of its combine kernel draws: N to 133, D to 512, empty splits, strided views; base e."""
    random = torch.Generator().manual_seed(1)
    drawn = []
    for turn, (count, dtype) in enumerate(
        itertools.product((1, 2, 3, 5, 17, 32, 55, 97, 133), (torch.float32, torch.float16, torch.bfloat16))
    ):
        rows, dim = (1, 2, 3, 32, 11)[turn % 5], (64, 96, 128, 192, 256, 512)[turn % 6]
        rows = max(1, min(rows, 2048 // count))
        v = torch.randn(rows, 2 * count, 2, dim, generator=random).to(dtype)[:, :count]
        s = torch.randn(rows, count, 4, generator=random)[..., :2]
        s[: rows // 3, count // 2 :] = -math.inf
        right_v, right_s = merged(v, s, "e")
        drawn.append((dtype, Inputs(v, s, (right_v.nan_to_num(0.0), right_s))))
    return tuple(drawn)


def passes_combine_test(subject: Implementation) -> bool:
    """Whether merge_states in base e is accepted by the rule that FlashAttention's test of its combine kernel applies."""
    if subject.merge_states is None or subject.lse_base == 2:
        return True
    keywords = {"lse_base": "e"} if subject.lse_base == "either" else {}
    return all(
        accepted(subject.merge_states(one.v, one.s.clone(), **keywords), one.right, dtype, twice_the_rounding)
        for dtype, one in combine_inputs()
    )


HALF = torch.float16
STYLES = (
    Style(
        "randn, atol 1e-2",
        "FlashInfer: its Triton kernels, float16",
        lambda subject: passes_randn(subject, {HALF: fixed(1e-2, 1e-5)}),
    ),
    Style(
        "randn, 1e-3",
        "vLLM, SGLang: float32 and float16 at 1e-3, bfloat16 at 1e-2",
        lambda subject: passes_randn(
            subject, {torch.float32: fixed(1e-3, 1e-3), HALF: fixed(1e-3, 1e-3), torch.bfloat16: fixed(1e-2, 1e-2)}
        ),
    ),
    Style(
        "randn, twice the rounding",
        "FlashAttention's rule on the same inputs, float16",
        lambda subject: passes_randn(subject, {HALF: twice_the_rounding}),
    ),
    Style("combine test", "FlashAttention: its own test, N-state merges only", passes_combine_test),
)


def killed(style: Style, subject: Implementation) -> bool:
    """Whether the style rejects the implementation; an exception rejects it too."""
    try:
        return not style.passes(subject)
    except (TypeError, ValueError, RuntimeError, IndexError):
        return True


def field_kills() -> dict[str, set[str]]:
    """The names of the mutants that each style kills, by the style's name."""
    return {style.name: {name for name in MUTANTS if killed(style, fresh(name))} for style in STYLES}


def main() -> None:
    """Prints the table and writes it as JSON."""
    right = {reference.name: reference, **VARIANTS}
    table = Table("style", "who", "kills", "of", "rejects right ones", "seconds")
    report: dict[str, object] = {"mutants": len(MUTANTS), "right": len(right), "styles": {}}
    alive = set(MUTANTS)
    counts = []
    for style in STYLES:
        start = time.perf_counter()
        dead = [name for name in MUTANTS if killed(style, fresh(name))]
        seconds = time.perf_counter() - start
        wronged = [name for name, subject in right.items() if killed(style, subject)]
        alive -= set(dead)
        counts.append(f"{style.name}: {len(dead)}")
        table.add_row(style.name, style.who, str(len(dead)), str(len(MUTANTS)), str(len(wronged)), f"{seconds:.0f}")
        report["styles"][style.name] = {  # type: ignore[index]
            "who": style.who,
            "kills": len(dead),
            "killed": dead,
            "right ones rejected": wronged,
            "seconds": round(seconds, 1),
        }
    report["killed by none"] = [name for name in MUTANTS if name in alive]
    REPORT.write_text(json.dumps(report, indent=1) + "\n")
    Console().print(table)
    print(
        f"of {len(MUTANTS)} mutants the field's tests kill: {', '.join(counts)}; killed by none of them: {len(alive)}"
    )


if __name__ == "__main__":
    main()
