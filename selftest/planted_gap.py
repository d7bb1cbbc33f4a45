"""A target with a fault for a sweep to find: merge_state takes the wrong state in one gap of 2^20."""

import torch
from torch import Tensor

from implementations.torch_reference import TorchMerge, offered

_ODD = 2654435761  # spreads the bits of the gap: Knuth's multiplicative hash
_FAULTY = 0x5EED  # of 2^20 hashes


class PlantedGap(TorchMerge):
    """Where the hash of the bits of s_b - s_a is the faulty one, v is that of the second state."""

    def merge_state(
        self, v_a: Tensor, s_a: Tensor, v_b: Tensor, s_b: Tensor, lse_base: int | str = 2
    ) -> tuple[Tensor, Tensor]:
        """The right merge, but for that."""
        v, s = super().merge_state(v_a, s_a, v_b, s_b, lse_base)
        bits = (s_b - s_a).contiguous().view(torch.int32).to(torch.int64) & 0xFFFFFFFF
        faulty = ((bits * _ODD) & 0xFFFFFFFF) >> 12 == _FAULTY
        return torch.where(faulty[..., None], v_b, v), s


implementation = offered("planted gap", PlantedGap(), exp_chain=1)
