"""What an implementation of merging offers, and what it claims about itself.

An `Implementation` is all that the suite needs to judge a kernel: up to four callables and a set of claims. The laws
are held to the claims and to nothing else; what is not claimed is not checked, and the report says so.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, fields
from typing import Any

BITWISE_CLAIMS = (
    "identity",
    "padding",
    "commutative",
    "doubling",
    "shift",
    "scale",
    "batch",
    "layout",
    "in_place",
    "repeat",
)
OPERATIONS = ("merge_state", "merge_state_in_place", "merge_states", "variable_length_merge_states")
DTYPES = ("float32", "float16", "bfloat16")


@dataclass(frozen=True)
class Implementation:
    """One implementation of the merge operations, and its claims.

    Shapes: S rows (positions), N states, H heads, D head size. v is [S, H, D] (or [S, N, H, D], or ragged [nnz, H, D]),
    s is float32 [S, H] (or [S, N, H], or [nnz, H]).

    Callables (each optional, at least one given)

    merge_state: `(v_a, s_a, v_b, s_b) -> (v, s)`.
    merge_state_in_place: `(v, s, v_other, s_other, mask) -> None`; mask is a bool tensor [S] or None.
    merge_states: `(v, s) -> (v, s)` with v [S, N, H, D] and s [S, N, H].
    variable_length_merge_states: `(v, s, indptr) -> (v, s)` with v [nnz, H, D], s [nnz, H] and indptr [S + 1].

    Claims about inputs (the strategies draw nothing else)

    lse_base: the base of the logarithm in s: 2, "e", or "either" (the callables take a keyword `lse_base`).
    s_layout: "SH", or "HS" if s of the two-state operations is [H, S] in memory and in shape.
    dtypes: names of the dtypes that v may have.
    head_dims: the head sizes D that are taken; None means any.
    max_heads, max_states: the largest H and N; None means any.
    devices: the device types that tensors may live on, "cpu" or "cuda".
    strided: whether non-contiguous tensors are taken; False means called with contiguous tensors only.
    zero_sizes: whether S = 0, H = 0 and N = 0 are taken.
    checks_arguments: whether bad arguments are answered by a Python error that names the argument (law 17).

    Policies for special values

    plus_inf: what s = +inf means: "nan" (not an LSE, the row becomes NaN) or "empty" (an empty state).
    nan_lse: what s = NaN gives: "nan" (the row becomes NaN), "empty" (dropped) or "any" (not claimed).
    empty_v: "ignored" if the v of an empty state may hold anything, "finite" if it must be finite.

    Claims about accuracy

    exp_error: relative error of the exponential, as a fraction.
    log_error: error of the logarithm, as a fraction (absolute near 1, relative elsewhere: see oracles/bounds.py).
    exp_chain: how many exponentials are multiplied to weigh one state at most; None means as many as a one-pass
        algorithm needs, N - 1.
    bitwise: the claims that are held bit for bit; the others are held to the error bound. Of:
        "identity": an empty state on either side, and one non-empty state among N, change no bit;
        "padding": empty states among several non-empty ones change no bit;
        "commutative": the two sides swapped give the same bits;
        "doubling": a state merged with itself gives (v, fl(s + 1)), in base 2;
        "shift": a constant added to every s changes no bit of v;
        "scale": v times a power of two gives the result times that power;
        "batch": a row alone and in any batch has the same bits;
        "layout": a strided view gives the bits of its contiguous copy;
        "in_place": in place gives the bits of out of place;
        "repeat": the same inputs give the same bits on every run.

    known_failures: (property, reason) pairs: properties that are known to fail. One that no longer fails, or names no
        property, is an error.
    differs: the reasons, by property name, why a failure is a difference from this project's policy and not a wrong
        number, where the failing input has an s of -inf, inf or NaN or the call raises; used by the conformance table alone.

    Raises ValueError for a claim outside the values named here, TypeError for a callable that is none.
    """

    name: str
    merge_state: Callable[..., Any] | None = None
    merge_state_in_place: Callable[..., Any] | None = None
    merge_states: Callable[..., Any] | None = None
    variable_length_merge_states: Callable[..., Any] | None = None

    lse_base: int | str = 2
    s_layout: str = "SH"
    dtypes: tuple[str, ...] = DTYPES
    head_dims: tuple[int, ...] | None = None
    max_heads: int | None = None
    max_states: int | None = None
    devices: tuple[str, ...] = ("cpu", "cuda")
    strided: bool = True
    zero_sizes: bool = True
    checks_arguments: bool = False

    plus_inf: str = "nan"
    nan_lse: str = "nan"
    empty_v: str = "ignored"

    exp_error: float = 2.0**-22
    log_error: float = 2.0**-22
    exp_chain: int | None = None
    bitwise: frozenset[str] = field(default=frozenset({"identity", "layout", "in_place", "repeat"}))

    known_failures: tuple[tuple[str, str], ...] = ()
    differs: tuple[tuple[str, str], ...] = ()

    def __post_init__(self) -> None:
        for operation in OPERATIONS:
            given = getattr(self, operation)
            if given is not None and not callable(given):
                raise TypeError(f"{operation} of {self.name!r} is {given!r}; it must be callable or None")
        if not self.operations:
            raise ValueError(f"implementation {self.name!r} offers no operation; give at least one of {OPERATIONS}")
        _one_of(self, "lse_base", (2, "e", "either"))
        _one_of(self, "s_layout", ("SH", "HS"))
        _one_of(self, "plus_inf", ("nan", "empty"))
        _one_of(self, "nan_lse", ("nan", "empty", "any"))
        _one_of(self, "empty_v", ("ignored", "finite"))
        _some_of(self, "dtypes", DTYPES)
        _some_of(self, "devices", ("cpu", "cuda"))
        _some_of(self, "bitwise", BITWISE_CLAIMS)

    @property
    def operations(self) -> tuple[str, ...]:
        """The names of the operations that are offered."""
        return tuple(name for name in OPERATIONS if getattr(self, name) is not None)

    @property
    def bases(self) -> tuple[int | str, ...]:
        """The bases of the logarithm in s that are taken: 2, "e" or both."""
        return (2, "e") if self.lse_base == "either" else (self.lse_base,)

    def narrow_claims(self) -> list[str]:
        """What is not claimed and therefore not checked, a sentence each, in the order of the fields."""
        told = []
        absent = [name for name in OPERATIONS if name not in self.operations]
        if absent:
            told.append(f"{_listed(absent)} {'is' if len(absent) == 1 else 'are'} not offered")
        for claim in fields(self):
            value = getattr(self, claim.name)
            if claim.name == "bitwise":
                loose = [f"'{name}'" for name in BITWISE_CLAIMS if name not in value]
                if loose:
                    told.append(f"held to the bound, not bit for bit: {_listed(loose)}")
            elif claim.name in _NARROWER and value != claim.default:
                told.append(f"{claim.name} is {value!r}")
        if not self.checks_arguments:
            told.append("bad arguments are not checked")
        return told


_NARROWER = (
    "dtypes",
    "head_dims",
    "max_heads",
    "max_states",
    "devices",
    "strided",
    "zero_sizes",
    "plus_inf",
    "nan_lse",
    "empty_v",
    "exp_error",
    "log_error",
)


def _listed(words: list[str]) -> str:
    """a, b and c."""
    return " and ".join(filter(None, (", ".join(words[:-1]), words[-1])))


def _one_of(implementation: Implementation, claim: str, allowed: tuple[int | str, ...]) -> None:
    value = getattr(implementation, claim)
    if value not in allowed:
        raise ValueError(f"{claim} of {implementation.name!r} is {value!r}; it must be one of {allowed}")


def _some_of(implementation: Implementation, claim: str, allowed: tuple[str, ...]) -> None:
    values = getattr(implementation, claim)
    if isinstance(values, str) or not set(values) <= set(allowed):
        raise ValueError(f"{claim} of {implementation.name!r} is {values!r}; it must be a collection from {allowed}")
