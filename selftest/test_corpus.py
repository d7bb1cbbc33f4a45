"""The corpus of wrong implementations is what it says: each is wrong somewhere, right elsewhere, and says where it is from.

That every mutant is caught by a law is another test's business (`test_mutants.py`).
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

import pytest
import torch
from torch import Tensor

from implementations.mutants import CLASSES, MUTANTS, fresh
from implementations.torch_reference import TorchMerge, offered
from implementations.torch_reference import implementation as reference
from implementations.variants import VARIANTS
from mergelaws.implementation import OPERATIONS, Implementation
from properties import subject
from properties.cases import States
from properties.checks import assert_within_bound
from properties.memory import Guarded, GuardedAllocations
from properties.regimes import LSE_REGIMES, V_REGIMES

BASES: tuple[int | str, ...] = (2, "e")
LAYOUTS = ("stepped", "transposed", "padded", "second padded")
PLAIN = States("float32", 2, 5, 3, 4, 2, "near", "ordinary", "seven", seed=3)


@dataclass(frozen=True)
class Probe:
    """One concrete call: states, the operation, and what is unusual about the memory or the arguments."""

    operation: str
    states: States = PLAIN
    layout: str = "contiguous"
    mask: bool = False
    indptr: tuple[int, ...] | None = None
    twist: str = ""
    default: torch.dtype = torch.float32

    def outcome(self, implementation: Implementation) -> tuple[object, ...]:
        """Everything that the call did: the bytes, dtypes and shapes of results and arguments, and the error."""
        with subject.using(implementation):
            arguments = self.arguments()
        guarded = [Guarded.copy_of(x) if isinstance(x, Tensor) else x for x in arguments]
        given = [x.tensor if isinstance(x, Guarded) else x for x in guarded]
        if self.twist == "aliased":
            given[2:4] = given[:2]
        elif self.twist == "misaligned":  # guarded memory begins at an aligned address
            given = [x.new_zeros(x.numel() + 1)[1:].view(x.shape).copy_(x) for x in arguments if x is not None]
        torch.set_default_dtype(self.default)
        try:
            with GuardedAllocations() as allocations:
                results = getattr(implementation, self.operation)(*given, lse_base=self.states.base)
            told = [_bytes(x) for x in results or ()] + [allocations.overrun()]
        except (TypeError, ValueError, RuntimeError, IndexError) as error:
            told = [type(error), str(error)]
        finally:
            torch.set_default_dtype(torch.float32)
        return (*told, *(_bytes(x._buffer) for x in guarded if isinstance(x, Guarded)))

    def arguments(self) -> list[Tensor | None]:
        """The positional arguments, contiguous or not."""
        v, s = self.states.tensors()
        if self.twist == "poison":
            v[0, -1, 0, 0] = math.nan
            v[-1, 0, -1, -1] = math.inf
        if self.twist == "negative zero":
            v[:] = -0.0
        arguments: list[Tensor | None]
        if self.operation == "merge_states":
            arguments = [v, s]
        elif self.operation == "variable_length_merge_states":
            count = self.states.count
            ends = self.indptr or tuple(row * count for row in range(self.states.rows + 1))
            arguments = [v.flatten(0, 1), s.flatten(0, 1), torch.tensor(ends, device=v.device)]
        else:
            arguments = [v[:, 0], s[:, 0], v[:, 1], s[:, 1]]
            if self.mask:
                arguments.append(
                    torch.tensor([True, False, True, True, False] * len(v), device=v.device)[: 2 * len(v)][::2]
                )
        if self.layout == "second padded" and len(arguments) > 3:
            arguments[2] = _laid_out(v[:, 1], "padded")
        arguments = [_laid_out(x, self.layout) if x is not None and x.is_floating_point() else x for x in arguments]
        return _twisted(arguments, self.twist)


def _laid_out(x: Tensor, layout: str) -> Tensor:
    if layout == "stepped":
        return x.new_zeros([2 * size for size in x.shape])[tuple(slice(None, None, 2) for _ in x.shape)].copy_(x)
    if layout == "transposed":
        return x.transpose(0, 1).contiguous().transpose(0, 1)
    if layout == "padded":
        return x.new_zeros((*x.shape[:-1], x.shape[-1] + 3))[..., : x.shape[-1]].copy_(x)
    return x if layout == "second padded" else x.contiguous()


def _twisted(arguments: list[Tensor | None], twist: str) -> list[Tensor | None]:
    v, s = arguments[0], arguments[1]
    assert v is not None and s is not None
    if twist == "s float64":
        arguments[1] = s.double()
    elif twist == "second v bfloat16":
        arguments[2] = torch.ones_like(v).bfloat16()
    elif twist == "one row for all":
        arguments[2:4] = [x[:1] for x in arguments[2:4] if x is not None]
    elif twist == "mask of numbers":
        arguments.append(torch.arange(len(v), device=v.device))
    return arguments


def _bytes(x: Tensor) -> tuple[torch.dtype, torch.Size, bytes]:
    return x.dtype, x.shape, x.contiguous().view(torch.uint8).cpu().numpy().tobytes()


def probes() -> Iterator[Probe]:
    """From the plainest to the largest; the first on which a mutant differs is its demonstration."""
    for operation in OPERATIONS:
        yield from _plain(Probe(operation))
    yield from _in_place(Probe("merge_state_in_place"))
    yield from _ragged(Probe("variable_length_merge_states"))
    for twist in ("s float64", "second v bfloat16", "one row for all"):
        for operation in OPERATIONS[:2]:
            yield Probe(operation, replace(PLAIN, dtype="float16"), twist=twist)
    for operation, count in itertools.product(OPERATIONS[2:], (0, 1, 2, 3, 5, 8, 31, 33, 70)):
        for s, dtype in (("near", "float16"), ("near", "float32"), ("some empty", "float32"), ("dominant", "float32")):
            yield Probe(operation, States(dtype, 2, 3, 2, 5, count, s, "ordinary", "nan", seed=5))
    rising = tuple([0.0] * 32 + [300.0])
    yield Probe("merge_states", States("float32", 2, 2, 2, 3, len(rising), rising, (1.0, 2.0, 3.0)))
    for operation in OPERATIONS:
        yield from _regimes(Probe(operation))
        yield Probe(operation, replace(PLAIN, rows=65537, heads=1, dim=1))


def _plain(plain: Probe) -> Iterator[Probe]:
    states = plain.states
    yield plain
    for dtype, base in itertools.product(("float16", "bfloat16", "float32"), BASES):
        yield replace(plain, states=replace(states, dtype=dtype, base=base, rows=20, seed=11))
    for s in ((math.inf, 1.0), (1.0, math.inf), (math.nan, 1.0), (1.0, math.nan), (0.0, 1.0), (0.0, -200.0)):
        yield replace(plain, states=replace(states, s=s))
    for s in ((-math.inf, -math.inf), (-math.inf, 1.0), (1.0, -math.inf), (-7e4, -math.inf), (-2e30, -math.inf)):
        yield replace(plain, states=replace(states, s=s, garbage="inf"))
    yield replace(plain, twist="poison", states=replace(states, s=(0.0, -200.0)))
    yield replace(plain, twist="negative zero", states=replace(states, s="mostly empty"))
    yield replace(plain, twist="misaligned")
    yield replace(plain, default=torch.float64)
    for layout in LAYOUTS:
        yield replace(plain, layout=layout)
    for rows, heads, dim in ((0, 3, 4), (3, 0, 4), (2, 3, 1), (17, 5, 7), (2, 70, 9), (2, 2, 80), (1, 1, 300)):
        yield replace(plain, states=replace(states, dtype="float16", rows=rows, heads=heads, dim=dim))


def _in_place(plain: Probe) -> Iterator[Probe]:
    yield replace(plain, twist="aliased")
    for s in ("near", (0.0, math.nan), (math.nan, 0.0)):
        yield replace(plain, mask=True, states=replace(PLAIN, rows=9, s=s))
    yield replace(plain, mask=True, twist="negative zero")
    yield replace(plain, twist="mask of numbers")


def _ragged(plain: Probe) -> Iterator[Probe]:
    for indptr in ((0, 0, 3, 3, 5), (2, 4, 4, 9), (1, 1, 1), (0, 10), (3,), (0, 4, 2), (0, 11)):
        for s in ("near", "wide", (5.0, 1.0, math.nan, 2.0)):
            yield replace(plain, indptr=indptr, states=replace(PLAIN, s=s, count=4, rows=3 if 11 in indptr else 5))
        yield replace(plain, indptr=indptr, twist="poison")
    yield replace(plain, indptr=(0, 40), states=replace(PLAIN, count=8))


def _regimes(plain: Probe) -> Iterator[Probe]:
    many = plain.operation in OPERATIONS[2:]
    for s, v, base in itertools.product(LSE_REGIMES, ("ordinary", "mixed"), BASES):
        yield replace(plain, states=replace(PLAIN, s=s, v=v, garbage="nan", base=base, rows=20, count=3 if many else 2))
    for s, v in (
        ("equal", "constant"),
        ("near", "sinks"),
        ("near", "small"),
        ("near", "limits"),
        ("equal", "scalable"),
    ):
        for dtype in ("float32", "float16", "bfloat16"):
            yield replace(plain, states=replace(PLAIN, dtype=dtype, s=s, v=v, rows=20))


PROBES = tuple(probes())


@functools.cache
def right(place: int) -> tuple[object, ...]:
    """What the reference does on a probe."""
    return PROBES[place].outcome(reference)


def far_rows(implementation: Implementation, stride: int) -> bool:
    """Whether rows that lie `stride` elements apart are read as their copy is. The memory between them is not touched."""
    v, s = States("float16", 2, 3, 1, 4, 2, "near", "ordinary", seed=2).tensors()
    memory = torch.empty(2 * stride + 8, dtype=torch.float16, device=v.device)
    far = memory.as_strided((3, 2, 1, 4), (stride, 4, 4, 1))
    far.copy_(v)
    assert implementation.merge_states is not None
    return torch.equal(implementation.merge_states(far, s)[0], implementation.merge_states(v, s)[0])


def test_the_corpus_is_large_and_its_names_are_its_own() -> None:
    """At least 60 mutants and 8 variants, each under its own name, the reference's not among them."""
    assert len(MUTANTS) >= 60
    assert len(VARIANTS) >= 8
    assert not MUTANTS.keys() & VARIANTS.keys()
    for name, implementation in {**MUTANTS, **VARIANTS}.items():
        assert implementation.name == name != reference.name
    assert all(set(name) <= set("abcdefghijklmnopqrstuvwxyz0123456789-") for name in MUTANTS)


@pytest.mark.parametrize("name", MUTANTS)
def test_a_mutant_says_what_is_wrong_and_where_that_was_seen(name: str) -> None:
    """A docstring of a sentence or two, no two alike, and a last line that begins with 'Source: '."""
    text = (CLASSES[name].__doc__ or "").strip().splitlines()
    assert text[-1].strip().startswith("Source: ") and text[-1].strip().endswith(".")
    assert len(text) >= 3 and len(text[0]) > 20
    assert [other.__doc__ for other in CLASSES.values()].count(CLASSES[name].__doc__) == 1


@pytest.mark.parametrize("name", MUTANTS)
def test_a_mutant_is_wrong_somewhere_and_right_elsewhere(name: str) -> None:
    """On some probe it does what the reference does not, byte for byte; on some other it does the same."""
    mutant = fresh(name)
    if name in ("signed-offsets", "unsigned-offsets"):
        assert far_rows(mutant, 2**29)
        assert not far_rows(mutant, 2**30 if name == "signed-offsets" else 2**31)
        return
    differs = agrees = False
    for place, probe in enumerate(PROBES):
        same = probe.outcome(mutant) == right(place)
        differs, agrees = differs or not same, agrees or same
        if differs and agrees:
            return
    assert differs, f"{name} is not told from the reference by any of {len(PROBES)} probes"
    assert agrees, f"{name} is wrong on every probe: it is not one fault"


def test_a_copy_of_the_reference_is_told_from_it_by_no_probe() -> None:
    """The probes have no noise: what differs on them is wrong."""
    copy = offered("copy", TorchMerge())
    assert all(probe.outcome(copy) == right(place) for place, probe in enumerate(PROBES))


@pytest.mark.parametrize("name", ["torch", *VARIANTS])
@pytest.mark.parametrize("base", [2, "e"])
def test_a_correct_implementation_is_within_the_bound(name: str, base: int | str) -> None:
    """Some twenty thousand rows of every regime: gaps around the underflow, |s| up to 3e38, empties that hold NaN."""
    implementation = {"torch": reference, **VARIANTS}[name]
    with subject.using(implementation):
        if base not in subject.bases():
            pytest.skip(f"{name} does not take base {base}")
        many = implementation.merge_states is not None
        for (s, v), dtype, count in itertools.product(
            zip(LSE_REGIMES, itertools.cycle(V_REGIMES), strict=False),
            implementation.dtypes,
            (2, 3, 9, 40) if many else (2,),
        ):
            states = States(dtype, base, 90 if count < 40 else 30, 2, 2, count, s, v, "nan", seed=count)
            values, lses = states.tensors()
            keywords = {"lse_base": base} if implementation.lse_base == "either" else {}
            if many:
                out = implementation.merge_states(values, lses, **keywords)  # type: ignore[misc]
                operation = "merge_states"
            else:
                parts = values[:, 0], lses[:, 0], values[:, 1], lses[:, 1]
                out = implementation.merge_state(*parts, **keywords)  # type: ignore[misc]
                operation = "merge_state"
            assert_within_bound(operation, values, lses, out, base)
