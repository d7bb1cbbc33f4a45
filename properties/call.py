"""Calling the implementation under test: tensors as it claims to take them, memory poisoned and guarded around the call.

Every property calls through here. A call returns new tensors and leaves its arguments as they were, in place or not;
it raises LawBroken (law 14) if the implementation wrote where it should not, or left an output unwritten or misshapen.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import numpy
import torch

from properties import subject
from properties.broken import Call, Evidence, LawBroken
from properties.memory import Guarded, GuardedAllocations

State = tuple[torch.Tensor, torch.Tensor]


TWO_STATES = ("merge_state", "merge_state_in_place")
MANY_STATES = ("merge_states", "variable_length_merge_states")

made: list[Call] = []  # by the example at hand: `forget` begins another one


def forget() -> None:
    """Begins a new list of calls."""
    made.clear()


def merge(operation: str, v: torch.Tensor, s: torch.Tensor, base: int | str = 2) -> State:
    """The N states of each row, v [S, N, H, D], s [S, N, H], merged by `operation`; N = 2 for the two-state ones."""
    if operation == "merge_states":
        return merge_states(v, s, base)
    if operation == "variable_length_merge_states":
        positions, count, heads, dim = v.shape
        indptr = torch.arange(positions + 1, dtype=torch.int32, device=v.device) * count
        items = positions * count
        return variable_length_merge_states(v.reshape(items, heads, dim), s.reshape(items, heads), indptr, base)
    two = v[:, 0], s[:, 0], v[:, 1], s[:, 1]
    if operation == "merge_state":
        return merge_state(*two, base=base)
    return merge_state_in_place(*two, base=base)


def merge_state(
    v_a: torch.Tensor, s_a: torch.Tensor, v_b: torch.Tensor, s_b: torch.Tensor, base: int | str = 2
) -> State:
    """(v, s) of two states, v [S, H, D], s [S, H] in `base`."""
    return _out_of_place("merge_state", base, v_a.shape, v_a=v_a, s_a=s_a, v_b=v_b, s_b=s_b)


def merge_states(v: torch.Tensor, s: torch.Tensor, base: int | str = 2) -> State:
    """(v [S, H, D], s [S, H]) of the N states of each row, v [S, N, H, D], s [S, N, H] in `base`."""
    positions, _, heads, dim = v.shape
    return _out_of_place("merge_states", base, (positions, heads, dim), v=v, s=s)


def variable_length_merge_states(v: torch.Tensor, s: torch.Tensor, indptr: torch.Tensor, base: int | str = 2) -> State:
    """(v [S, H, D], s [S, H]) of the segments of v [nnz, H, D], s [nnz, H] that indptr [S + 1] cuts."""
    shape = (indptr.shape[0] - 1, *v.shape[1:])
    return _out_of_place("variable_length_merge_states", base, shape, v=v, s=s, indptr=indptr)


@contextlib.contextmanager
def _nothing_left_behind() -> Iterator[None]:
    """An error that a failed launch leaves in CUDA is met here, and not by whatever is launched next."""
    try:
        yield
    except Exception:
        if torch.cuda.is_initialized():
            with contextlib.suppress(RuntimeError):
                torch.zeros(1, device="cuda")
        raise


@_nothing_left_behind()
def merge_state_in_place(
    v: torch.Tensor,
    s: torch.Tensor,
    v_other: torch.Tensor,
    s_other: torch.Tensor,
    mask: torch.Tensor | None = None,
    base: int | str = 2,
) -> State:
    """What (v, s) holds after the other state was merged into a copy of it of the same strides."""
    operation = "merge_state_in_place"
    inputs = {"v": v, "s": s, "v_other": v_other, "s_other": s_other} | ({} if mask is None else {"mask": mask})
    made.append(Call(operation, inputs, base))
    guarded = _guarded(operation, inputs)
    given = {name: memory.tensor for name, memory in guarded.items()}
    with GuardedAllocations() as allocations, numpy.errstate(all="ignore"):
        subject.current().merge_state_in_place(  # type: ignore[misc]  # the property asked whether it is offered
            given["v"], given["s"], given["v_other"], given["s_other"], given.get("mask"), **_base_of(base)
        )
    _synchronise()
    _require(not allocations.overrun(), operation, "wrote beside the memory that it allocated", inputs, base)
    for name in ("v", "s"):
        _require(not guarded[name].changed_outside(), operation, f"wrote beside {name}", inputs, base)
    for name in set(guarded) - {"v", "s"}:
        _require(not guarded[name].changed(), operation, f"wrote to {name} or beside it", inputs, base)
    return given["v"].clone(), turned(operation, "s", given["s"]).clone()


@_nothing_left_behind()
def _out_of_place(operation: str, base: int | str, shape: tuple[int, ...], **inputs: torch.Tensor) -> State:
    made.append(Call(operation, inputs, base))
    guarded = _guarded(operation, inputs)
    with GuardedAllocations() as allocations, numpy.errstate(all="ignore"):
        v, s = getattr(subject.current(), operation)(*(memory.tensor for memory in guarded.values()), **_base_of(base))
    _synchronise()
    for name, memory in guarded.items():
        _require(not memory.changed(), operation, f"wrote to {name} or beside it", inputs, base)
    _require(not allocations.overrun(), operation, "wrote beside the memory that it allocated", inputs, base)
    dtype, s = next(iter(inputs.values())).dtype, turned(operation, "s", s)
    _require(v.dtype == dtype, operation, f"returned v as {v.dtype}, not {dtype}", inputs, base)
    _require(s.dtype == torch.float32, operation, f"returned s as {s.dtype}, not torch.float32", inputs, base)
    _require(tuple(v.shape) == tuple(shape), operation, f"returned v of shape {tuple(v.shape)}", inputs, base)
    _require(tuple(s.shape) == tuple(shape[:-1]), operation, f"returned s of shape {tuple(s.shape)}", inputs, base)
    return v.clone(), s.clone()


def _guarded(operation: str, inputs: dict[str, torch.Tensor]) -> dict[str, Guarded]:
    """The inputs in guarded memory, in the layout that the implementation claims to take, their bytes remembered."""
    guarded = {}
    for name, tensor in inputs.items():
        guarded[name] = Guarded.copy_of(as_taken(operation, name, tensor))
        guarded[name].remember()
    return guarded


def as_taken(operation: str, name: str, tensor: torch.Tensor) -> torch.Tensor:
    """The argument `name` in the layout that the implementation claims to take."""
    taken = turned(operation, name, tensor)
    return taken.contiguous() if taken is not tensor or not subject.current().strided else taken


def turned(operation: str, name: str, tensor: torch.Tensor) -> torch.Tensor:
    """s [S, H] as [H, S] and back, for the two-state operations of an implementation that has it so."""
    if subject.current().s_layout == "HS" and operation in TWO_STATES and name.startswith("s"):
        return tensor.t()
    return tensor


def _base_of(base: int | str) -> dict[str, int | str]:
    return {"lse_base": base} if subject.current().lse_base == "either" else {}


def _synchronise() -> None:
    if torch.cuda.is_available():
        torch.cuda.synchronize()


def _require(holds: bool, operation: str, fault: str, inputs: dict[str, torch.Tensor], base: int | str) -> None:
    if not holds:
        evidence = Evidence(operation, "only the outputs are written, all of them", inputs, base, actual=fault)
        raise LawBroken(f"{operation} {fault}", evidence)
