"""Tile shapes, in one place, keyed by the class of the shape. Bits never depend on them."""

from __future__ import annotations

import triton

from mergelaws.backend import INTERPRETED

# Under the interpreter a program costs about 0.5 ms whatever it holds, so a program holds many rows.
_INTERPRETED_ELEMENTS = 16384
_COMPILED_ELEMENTS = 1024

# States are summed in chunks, and the chunks are summed in order. The chunk is a function of N alone (law 13): about 32
# chunks, so that a second stage never has much to do, of at least 16 states, so that few states need no second stage.
LEAST_CHUNK = 16
MOST_CHUNKS = 32

# Below this many rows the chunks of a row are shared among programs.
_FEW_ROWS = 2048


def _power_of_two(number: int) -> int:
    return int(triton.next_power_of_2(number))


def two_state_tile(rows: int, dim: int, element_size: int) -> tuple[int, int, int]:
    """(rows of a tile, columns of a tile, warps) for merging two states of head size `dim`."""
    elements = _INTERPRETED_ELEMENTS if INTERPRETED else _COMPILED_ELEMENTS
    block_d = min(_power_of_two(dim), 1024)
    block_r = max(1, min(elements // block_d, _power_of_two(rows)))
    return block_r, block_d, 4


def many_state_tile(rows: int, dim: int, element_size: int) -> tuple[int, int, int]:
    """(rows of a tile, columns of a tile, warps) for merging N states of head size `dim`."""
    elements = _INTERPRETED_ELEMENTS if INTERPRETED else _COMPILED_ELEMENTS
    block_d = min(_power_of_two(dim), 512)
    block_r = max(1, min(elements // block_d, _power_of_two(rows)))
    return block_r, block_d, 4


def chunk_of(states: int) -> int:
    """How many of `states` states are summed before the sum is merged with the others: a function of N alone."""
    return max(LEAST_CHUNK, _power_of_two(triton.cdiv(states, MOST_CHUNKS)))


def shares_chunks(rows: int, states: int) -> bool:
    """Whether the chunks of one row go to several programs."""
    return rows <= _FEW_ROWS and states > chunk_of(states)
