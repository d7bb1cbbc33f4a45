"""The search for the worst rows: of a generation, those with the highest error over bound have the next one's children."""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import torch

from mergelaws.implementation import Implementation
from mergelaws.sweep.judging import Verdict, judge, ratios_of
from mergelaws.sweep.rows import DTYPES, Rows, head_dim
from oracles.screen import GUARD
from properties.call import TWO_STATES
from properties.cases import largest_v

COUNTS = (2, 3, 4, 8)  # N: with more states, ratios fall
PARENTS = 64
GENERATIONS = 40
_BITS = {torch.float32: (torch.int32, 23), torch.float16: (torch.int16, 10), torch.bfloat16: (torch.int16, 7)}


@dataclass(frozen=True)
class Slope:
    """What is climbed: an operation, the dtype of v, the base of s, N, and which output's ratio."""

    operation: str
    dtype: str
    base: int | str
    count: int
    output: str


def slopes(implementation: Implementation) -> list[Slope]:
    """All that the implementation claims."""
    most = implementation.max_states or max(COUNTS)
    return [
        Slope(operation, dtype, base, count, output)
        for count, operation, dtype, base, output in itertools.product(
            COUNTS, implementation.operations, implementation.dtypes, implementation.bases, ("v", "s")
        )
        if count <= (2 if operation in TWO_STATES else most)
    ]


def climb(
    slope: Slope, implementation: Implementation, generations: int, children: int, seed: int, device: str
) -> tuple[Verdict, int]:
    """The verdict on the last generation, which holds the best of all before it, and its number; a row is one column.

    A generation in which an output of a row may be over the bound is the last: its children need not show that again.
    """
    random = torch.Generator(device=device).manual_seed(seed)
    dtype, dim = DTYPES[slope.dtype], head_dim(implementation, 1)
    v = torch.randn(children, slope.count, device=device, generator=random).to(dtype)
    size = 10.0 ** (7.0 * torch.rand(children, 1, device=device, generator=random) - 2.0)  # of s: 0.01 to 100,000
    s = size * (1.0 + torch.randn(children, slope.count, device=device, generator=random) / size.clamp(min=1.0))
    for step in range(generations):
        rows = Rows(slope.operation, slope.base, v[:, :, None].expand(-1, -1, dim), s)
        out = rows.merged(implementation)
        of_v, of_s = ratios_of(rows, out, implementation)
        if step == generations - 1 or float(torch.maximum(of_v, of_s).max()) > 1.0 - GUARD:
            break
        best = (of_v if slope.output == "v" else of_s).topk(PARENTS).indices
        parents_v, parents_s = v[best], s[best]
        picked = torch.randint(PARENTS, (children - PARENTS,), device=device, generator=random)
        mates = torch.randint(PARENTS, (children - PARENTS,), device=device, generator=random)
        crossed = torch.rand(children - PARENTS, slope.count, device=device, generator=random) < 0.2
        new_v = torch.where(crossed, parents_v[mates], parents_v[picked])
        new_s = torch.where(crossed, parents_s[mates], parents_s[picked])
        new_v, new_s = _mutated(new_v, random), _mutated(new_s, random)
        most = largest_v(dtype, slope.count)
        new_v = torch.where(new_v.abs() <= most, new_v, 0.0).to(dtype)  # NaN is not <= either
        new_s = torch.where(new_s.isfinite(), new_s, 0.0)
        v, s = torch.cat([parents_v, new_v]), torch.cat([parents_s, new_s])
    return judge(rows, out, implementation), step + 1


def _mutated(numbers: torch.Tensor, random: torch.Generator) -> torch.Tensor:
    """The numbers, about half of them with a bit flipped: of the significand mostly, else of the sign or the exponent."""
    integers, significand = _BITS[numbers.dtype]
    width = numbers.element_size() * 8
    shape, device = numbers.shape, numbers.device
    low = torch.randint(significand, shape, device=device, generator=random)
    high = torch.randint(significand, width, shape, device=device, generator=random)
    odds = torch.rand(shape, device=device, generator=random)
    flip = torch.ones_like(low) << torch.where(odds < 0.4, low, high)
    flip = torch.where(odds < 0.5, flip - ((flip >> (width - 1)) << width), 0)  # as a signed number
    return (numbers.contiguous().view(integers) ^ flip.to(integers)).view(numbers.dtype)
