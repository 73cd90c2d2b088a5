"""The storages of a PyTorch tensor: one of a dense tensor, several of a sparse one."""

from __future__ import annotations

from typing import Any

import torch

_COMPRESSED_ROWS = ("crow_indices", "col_indices", "values")
_COMPRESSED_COLUMNS = ("ccol_indices", "row_indices", "values")
_PARTS = {
    torch.sparse_coo: ("_indices", "_values"),
    torch.sparse_csr: _COMPRESSED_ROWS,
    torch.sparse_bsr: _COMPRESSED_ROWS,
    torch.sparse_csc: _COMPRESSED_COLUMNS,
    torch.sparse_bsc: _COMPRESSED_COLUMNS,
}


def storages(tensor: torch.Tensor) -> list[Any]:
    """What holds the tensor's elements, and its indices if it is sparse."""
    return [part.untyped_storage() for part in parts_of(tensor)]


def parts_of(tensor: torch.Tensor) -> list[torch.Tensor]:
    """The tensor itself, or of a sparse one its indices and values."""
    names = _PARTS.get(tensor.layout)
    return [tensor] if names is None else [getattr(tensor, name)() for name in names]


def storage_key(storage: Any) -> int:
    """The same for the same storage, whatever views it, while it lives."""
    return int(storage._cdata)
