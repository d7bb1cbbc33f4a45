"""What a property that failed has found: the message, and the call of the target that shows it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from types import FrameType
from typing import Any

import torch

from mergelaws import counterexample
from mergelaws.implementation import Implementation
from properties import call, checks
from properties.broken import Evidence, LawBroken
from properties.limit import TimeLimit

SMALL = 256  # elements: a call with that many at most is shown whole


@dataclass(frozen=True)
class Finding:
    """kind: "wrong" (numbers or memory), "raised", "hung" or "crashed"."""

    law: int
    property: str
    kind: str
    message: str
    evidence: Evidence | None = None

    def as_plain(self, target: str, implementation: Implementation, reproduce: str) -> dict[str, Any]:
        """Strings and numbers, with the counterexample as a Python program."""
        told = self.evidence
        program = counterexample.program(target, implementation, told, self.message) if told is not None else ""
        return {
            "law": self.law,
            "property": self.property,
            "kind": self.kind,
            "message": self.message,
            "operation": told.operation if told else "",
            "claim": told.claim if told else "",
            "base": told.base if told else "",
            "expected": told.expected if told else "",
            "actual": told.actual if told else "",
            "ratio": told.ratio if told else None,
            "python": program,
            "reproduce": reproduce,
        }


def found(law: int, name: str, error: BaseException) -> Finding:
    """What `error`, raised by the property `name` of `law`, has found."""
    causes = list(_causes(error))
    broken = next((cause for cause in causes if isinstance(cause, LawBroken)), None)
    if broken is not None:
        return Finding(law, name, "wrong", str(broken), _whole(broken))
    stopped = next((cause for cause in causes if isinstance(cause, TimeLimit)), None)
    if stopped is not None:
        evidence = _last_call(stopped, "comes back", "", "it did not come back")
        return Finding(law, name, "hung", f"{name} did not come back: {stopped}", evidence)
    inner = causes[-1]
    words = f"{type(inner).__name__}: {inner}".strip()
    evidence = _last_call(inner, "takes what is claimed", "a result", words.splitlines()[0])
    inside = evidence is not None
    message = f"{evidence.operation} raised {words}" if evidence is not None else words
    return Finding(law, name, "raised" if inside else "wrong", message, evidence)


def _causes(error: BaseException) -> Iterator[BaseException]:
    """The error and, within a group of them, its members."""
    yield error
    for member in getattr(error, "exceptions", ()):
        yield from _causes(member)


def _frames(error: BaseException) -> list[FrameType]:
    frames, step = [], error.__traceback__
    while step is not None:
        frames.append(step.tb_frame)
        step = step.tb_next
    return frames


def _last_call(error: BaseException, claim: str, expected: str, actual: str) -> Evidence | None:
    """The arguments of the target's call that `error` came out of, if it came out of one."""
    for frame in reversed(_frames(error)):
        if Path(frame.f_code.co_filename).name == Path(call.__file__).name and "inputs" in frame.f_locals:
            if frame.f_code.co_name not in ("_out_of_place", "merge_state_in_place"):
                continue
            local = frame.f_locals
            return Evidence(local["operation"], claim, local["inputs"], local["base"], expected, actual)
    return None


def _whole(broken: LawBroken) -> Evidence:
    """The evidence with the whole call that was judged, where it is known and small, or else with all calls made."""
    evidence = broken.evidence
    for frame in _frames(broken):
        if frame.f_code is checks.assert_within_bound.__code__:
            v, s = frame.f_locals["v"], frame.f_locals["s"]
            if isinstance(v, torch.Tensor) and v.numel() <= SMALL:
                return replace(evidence, inputs={"v": v, "s": s})
            return evidence
    return replace(evidence, calls=tuple(call.made))
