"""Lanes: how a kernel's programs share the elements of a tensor [..., H, D].

A row of D elements is cut into vectors of VEC neighbouring elements, and a lane holds one vector. Lanes run over all
vectors of all rows, whatever D is, so none idles but in the last program; the offsets of a vector are counted in vectors,
so the compiler sees how far they are aligned. Offsets are 64-bit where WIDE, 32-bit otherwise.
"""

from __future__ import annotations

import triton.language as tl

from mergelaws.kernels.inlining import inlined


@inlined
def width_of(vectors, VECTORS: tl.constexpr):
    """How many vectors a row has: a constant of the kernel where VECTORS is not 0, else its argument."""
    if VECTORS:
        return VECTORS
    return vectors


@inlined
def lanes_of(program, width, LANES: tl.constexpr, WIDE: tl.constexpr):
    """(row, vector of that row) of each lane of `program`; [LANES] each."""
    if WIDE:
        program = program.to(tl.int64)
    index = program * LANES + tl.arange(0, LANES)
    return index // width, index % width


@inlined
def at_elements(base, vectors, VEC: tl.constexpr):
    """Pointers to the elements of vectors [LANES], given as offsets in vectors from `base`; [LANES, VEC].

    The compiler is told that every vector is aligned to its size, as `layout.vector_of` sees to. It has to be told of
    the sum itself: of a function's argument it forgets it.
    """
    pointers = base + ((vectors * VEC)[:, None] + tl.arange(0, VEC)[None, :])
    return tl.multiple_of(pointers, (1, VEC * pointers.dtype.element_ty.primitive_bitwidth // 8))


@inlined
def over_elements(value, LANES: tl.constexpr, VEC: tl.constexpr):
    """One value per lane [LANES], for each of its elements [LANES, VEC]."""
    return tl.broadcast_to(value[:, None], (LANES, VEC))
