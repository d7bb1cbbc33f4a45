"""The kernels of this project. They claim everything but "padding".

The chunks of a row are counted from its first state, empty or not, so empties among several states can move a chunk's edge
and with it a rounding.
"""

import mergelaws
from mergelaws.implementation import Implementation

implementation = Implementation(
    name="ours",
    merge_state=mergelaws.merge_state,
    merge_state_in_place=mergelaws.merge_state_in_place,
    merge_states=mergelaws.merge_states,
    variable_length_merge_states=mergelaws.variable_length_merge_states,
    lse_base="either",
    devices=(mergelaws.backend.DEVICE_TYPE,),
    checks_arguments=True,
    exp_chain=2,
    bitwise=frozenset(
        {"identity", "commutative", "shift", "scale", "batch", "layout", "in_place", "repeat", "doubling"}
    ),
)
