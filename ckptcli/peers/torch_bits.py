"""The bits of a PyTorch tensor: a digest of them, and the tensor as an array to compare."""

from __future__ import annotations

from hashlib import blake2b
from typing import Any

import torch

from ckptcli.peers.torch_storages import parts_of

_WIDER = {torch.bfloat16: torch.float32, torch.float16: torch.float32}


def digest(tensor: torch.Tensor) -> bytes:
    """The same for tensors of one shape and dtype with the same bits."""
    found = blake2b(f"{tuple(tensor.shape)} {tensor.dtype}".encode(), digest_size=16)
    for part in parts_of(tensor.detach()):
        plain = part.resolve_conj().resolve_neg().to("cpu").contiguous()
        if plain.numel():
            found.update(plain.reshape(-1).view(torch.uint8).numpy())
    return found.digest()


def as_array(tensor: torch.Tensor) -> Any:
    """A copy as a NumPy array of floats, of complex numbers both parts."""
    dense = tensor.detach().to("cpu").to_dense().resolve_conj().resolve_neg()
    if dense.is_complex():
        dense = torch.view_as_real(dense)
    if not dense.dtype.is_floating_point:
        dense = dense.to(torch.float64)
    return dense.to(_WIDER.get(dense.dtype, dense.dtype), copy=True).numpy()
