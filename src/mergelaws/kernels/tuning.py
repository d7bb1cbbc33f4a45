"""Tiles and regimes, in one place, keyed by the class of the shape. Bits never depend on them, but for `chunk_of`.

Beside each choice stands what was measured for it on one H200 with Triton 3.6, float16, H = 32, D = 128 unless S x N x H x D
is given: microseconds a call, in CUDA graphs.
"""

from __future__ import annotations

import functools
import math
from typing import NamedTuple

import triton

from mergelaws.backend import INTERPRETED


class Tile(NamedTuple):
    """What a program holds: lanes and warps, elements of a lane, and states (or s) that a lane loads at once."""

    lanes: int
    warps: int
    vec: int = 1
    batch: int = 1
    scan: int = 1


# Under the interpreter a program costs about 0.5 ms and an operation 0.02 ms, whatever they hold: a program holds many
# elements, and few states are loaded for nothing: a chunk's last batch may be of one state.
_INTERPRETED_ELEMENTS = 16384
_INTERPRETED_BATCH = 4

# States are summed in chunks, and the chunks are summed in order. The chunk is a function of N alone (law 13): about the
# root of N, so that neither stage is long, of at least 16 states, so that few states need no second stage.
LEAST_CHUNK = 16

# A row's chunks are shared among programs where whole rows would be fewer lanes than the GPU's 132 multiprocessors run.
_FEW_LANES = 132 * 128  # 64 x 64 x 32 x 128, 32768 lanes: not shared 12.2, shared 13.8

_TINY = 1 << 14  # elements

# Programs that leave no multiprocessor idle: two on each.
_ENOUGH_PROGRAMS = 264


def two_state_tile(lanes: int, vec: int, whole: int) -> Tile:
    """For merging two states: `lanes` in all, of `vec` elements; a program's lanes hold `whole` or more of them."""
    if INTERPRETED:
        tile = _interpreted(lanes, vec)
    elif lanes < 1 << 16:
        tile = Tile(128, 4)  # 1 row: 0.82 (256 lanes 0.94); 64 rows: 1.77 (1.91)
    else:
        tile = Tile(256, 8)  # 512 rows: 4.31 (128 lanes 4.87); 2048: 13.7 (14.1); 16384: 98.5 (99.7)
    return Tile(max(tile.lanes, _power_of_two(whole)), tile.warps, vec)


def whole_tile(elements: int, widest: int, states: int) -> Tile:
    """For merging whole rows of `states` states, of `elements` elements in all; `widest` may be accessed at once."""
    if INTERPRETED:
        return _interpreted(elements // widest, widest, states)
    vec = min(widest, 4) if elements <= _TINY else widest  # 1 x 8: 4 elements 1.48, 8 elements 1.62 (not overlapped)
    if states <= LEAST_CHUNK:
        return Tile(128, 4, vec, _power_of_two(max(1, states)))
    return Tile(
        128, 4, vec, LEAST_CHUNK, 64
    )  # 2048 x 100: 411.6 (scan 32 417.5; 8 states at once 418.4; 256 lanes 418.3)


def shared_tile(elements: int, widest: int, chunk: int) -> Tile:
    """For folding chunks of `elements` elements each, one program a chunk."""
    if INTERPRETED:
        return _interpreted(elements // widest, widest, chunk)
    # 4 elements and 8: 1 x 64 2.70, 3.27; 1 x 512 4.90, 5.14; 16 x 512 x 8 x 128 8.59, 8.75; 64 x 512 x 8 x 128 22.7, 24.3
    vec = min(widest, 4)
    if chunk <= 32:
        return Tile(128, 4, vec, chunk)  # 1 x 512: 32 states at once 4.90, 16 5.79; 64 x 512 x 8 x 128: 22.7, 23.7
    return Tile(128, 4, vec, LEAST_CHUNK, LEAST_CHUNK)


def part_tile(rows: int, dim: int, parts: int) -> Tile:
    """For adding the `parts` partial states of each of `rows` rows."""
    if INTERPRETED:
        return _interpreted(rows * dim // math.gcd(dim, 4), math.gcd(dim, 4), parts)
    # 2 elements and 1: 16 x 512 x 8 x 128 7.94, 8.60; 64 x 512 x 8 x 128 23.7, 24.3; 1 x 64 2.98, 2.79
    vec = 2 if rows * dim >= _TINY and dim % 2 == 0 else 1
    return Tile(128, 4, vec, 16 if parts <= 16 else 32)


def segment_batch(length: int) -> int:
    """How many states of a segment a lane loads at once, where most have so many."""
    if INTERPRETED:
        return _interpreted_batch(length)
    return next((batch for batch in (2, 8) if length <= batch), LEAST_CHUNK)


def segment_tile(elements: int, widest: int, batch: int) -> Tile:
    """For merging whole segments of `elements` elements in all, `batch` states at once."""
    if INTERPRETED:
        return _interpreted(elements // widest, widest, batch)
    # A program reads indptr before all else; where it then has little to load, four lanes a thread make up for it.
    lanes = 512 if batch == 2 and elements // widest >= 2 * 512 * _ENOUGH_PROGRAMS else 128
    return Tile(lanes, 4, widest, batch, 8)


def longest_alone(lanes: int) -> int:
    """How many states a segment may have to be merged by one program, if all segments take that many lanes."""
    return LEAST_CHUNK if lanes < _FEW_LANES and not INTERPRETED else LEAST_CHUNK * LEAST_CHUNK


def most_chunks(lanes: int, items: int) -> int:
    """How many chunks the segments of a list of `items` states have at most that are longer than `longest_alone`."""
    # 17 states have 2 chunks of 16, and 257 states have 9 of 32; no longer segment has more chunks for its states
    return items // 8 if longest_alone(lanes) == LEAST_CHUNK else items // 28


@functools.lru_cache(4096)
def segment_kind(lanes: int, segments: int, items: int, longest: int, chunks: int | None) -> tuple[int, int]:
    """(batch, slots) for `segments` segments of `lanes` lanes and `items` states in all, the longest of `longest` states.

    chunks: how many all have together; None if other segments may come in their place, so that `longest` is a hint.
    """
    most = most_chunks(lanes, items)
    if chunks is not None:
        slots = 0 if longest <= longest_alone(lanes) else min(most, _power_of_two(chunks))
    else:  # the launches for long segments cost microseconds where there are none
        slots = 0 if items <= longest_alone(lanes) or longest <= 4 * LEAST_CHUNK else most
    return segment_batch(longest if INTERPRETED else -(-items // max(1, segments))), slots


def long_tile(elements: int, widest: int) -> Tile:
    """For folding a chunk of a long segment, of `elements` elements."""
    if INTERPRETED:
        return _interpreted(elements // widest, widest, LEAST_CHUNK)
    return Tile(128, 4, widest, LEAST_CHUNK, LEAST_CHUNK)


def workers_of(tiles: int) -> int:
    """How many programs the chunks of long segments are dealt to, if a chunk takes `tiles` programs."""
    return 1 if INTERPRETED else max(1, _ENOUGH_PROGRAMS // tiles)


def chunk_of(states: int) -> int:
    """How many of `states` states are summed before the sum is merged with the others: a function of N alone."""
    return max(LEAST_CHUNK, _power_of_two(math.isqrt(max(states, 1) - 1) + 1))


def shares_chunks(lanes: int, states: int) -> bool:
    """Whether the chunks of one row go to several programs, if whole rows take that many lanes."""
    if INTERPRETED:
        return states > LEAST_CHUNK * LEAST_CHUNK
    return lanes < _FEW_LANES and states > LEAST_CHUNK


def _power_of_two(number: int) -> int:
    return int(triton.next_power_of_2(number))


def _interpreted(lanes: int, vec: int, states: int = 1) -> Tile:
    lanes = min(_INTERPRETED_ELEMENTS // vec, _power_of_two(lanes))
    return Tile(lanes, 4, vec, _interpreted_batch(states))


def _interpreted_batch(states: int) -> int:
    return max(1, states) if states <= LEAST_CHUNK else _INTERPRETED_BATCH
