"""Who is timed beside ours by benchmarks/merge.py."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from unittest import mock

import torch

import mergelaws
from benchmarks import one_program_per_row
from benchmarks.cases import ITEM, RAGGED, Case, Inputs
from mergelaws.kernels import dense, kept, segments, two_states

try:
    import flashinfer
    from flashinfer.triton.cascade import variable_length_merge_states as flashinfer_segments
except ImportError:
    flashinfer = None

OURS = "mergelaws"
ALONE = "mergelaws, not overlapped"

State = tuple[torch.Tensor, torch.Tensor]
Run = Callable[[Inputs], State]


@dataclass(frozen=True)
class Peer:
    """An implementation: its name and, for a case, the call on given inputs; None where it does not take the case.

    slow: a few calls are timed. around: what its calls are made and captured in.
    """

    name: str
    run: Callable[[Case], Run | None]
    slow: Callable[[Case], bool] = lambda _: False
    around: Callable[[], contextlib.AbstractContextManager[None]] = contextlib.nullcontext


def peers() -> list[Peer]:
    """Ours first."""
    return [
        Peer(OURS, ours),
        Peer(ALONE, ours, around=_not_overlapped),
        Peer("merge_states of mergelaws", _equal_segments),
        *_flashinfer(),
        Peer("one program per row", _one_row),
        Peer("PyTorch eager", _eager, slow=lambda _: True),
    ]


def ours(case: Case) -> Run:
    """The public operation."""
    if case.operation == "merge_state":
        return lambda x: mergelaws.merge_state(*x.pair)
    if case.operation == "merge_states":
        return lambda x: mergelaws.merge_states(x.v, x.s)
    return lambda x: mergelaws.variable_length_merge_states(x.v, x.s, x.indptr)  # type: ignore[arg-type]


@contextlib.contextmanager
def _not_overlapped() -> Iterator[None]:
    """Ours as it is on a device without programmatic dependent launch."""
    with contextlib.ExitStack() as stack:
        for module in (dense, segments, two_states):
            stack.enter_context(mock.patch.object(module, "overlaps_on", return_value=False))
        kept.forget()
        yield
    kept.forget()


def _equal_segments(case: Case) -> Run | None:
    """The dense call on the same states, where the segments of a ragged case are of one length."""
    if not isinstance(case.states, tuple) or len(case.states) != 1:
        return None
    shape = case.rows, case.states[0][0], case.heads
    return lambda x: mergelaws.merge_states(x.v.view(*shape, case.dim), x.s.view(*shape))


def _eager(case: Case) -> Run | None:
    def two(x: Inputs) -> State:
        v_a, s_a, v_b, s_b = x.pair
        m = torch.maximum(s_a, s_b)
        w_a, w_b = torch.exp2(s_a - m), torch.exp2(s_b - m)
        d = w_a + w_b
        v = (w_a / d).unsqueeze(-1) * v_a + (w_b / d).unsqueeze(-1) * v_b
        return v.to(v_a.dtype), m + torch.log2(d)

    def many(x: Inputs) -> State:
        m = x.s.amax(dim=1)
        w = torch.exp2(x.s - m.unsqueeze(1))
        d = w.sum(dim=1)
        v = (w.unsqueeze(-1) * x.v).sum(dim=1) / d.unsqueeze(-1)
        return v.to(x.v.dtype), m + torch.log2(d)

    if case.bytes > 2**30:
        return None  # its float32 products would be many gigabytes
    return {"merge_state": two, "merge_states": many}.get(case.operation)


def _one_row(case: Case) -> Run | None:
    if case.operation == "merge_state" and case.dim & (case.dim - 1) == 0:
        return lambda x: one_program_per_row.merge_state(*x.pair)
    return None


def _flashinfer() -> list[Peer]:
    if flashinfer is None:
        return []

    def run(case: Case) -> Run | None:
        threads = case.heads * case.dim * ITEM[case.dtype] // 16
        if case.dtype == "float32" or case.dim not in (64, 128, 256, 512) or threads > 1024:
            return None
        if case.operation == "merge_state":
            return lambda x: flashinfer.merge_state(*x.pair)
        if case.operation == "merge_states":
            return lambda x: flashinfer.merge_states(x.v, x.s)
        return lambda x: flashinfer_segments(x.v, x.s, x.indptr)

    name = f"flashinfer {getattr(flashinfer, '__version__', '')}".strip()
    return [Peer(name, run, slow=lambda case: case.operation == RAGGED)]


def in_place_calls(inputs: Inputs) -> dict[str, Callable[[], None]]:
    """merge_state_in_place of ours and of FlashInfer, where installed, on a copy of the pair in `inputs`."""
    v, s, v_other, s_other = (tensor.clone() for tensor in inputs.pair)
    calls = {OURS: lambda: mergelaws.merge_state_in_place(v, s, v_other, s_other)}
    for peer in _flashinfer():
        calls[peer.name] = lambda: flashinfer.merge_state_in_place(v, s, v_other, s_other)
    return calls
