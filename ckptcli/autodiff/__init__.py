"""The engine: tensors, the op table, the tape and the backward pass."""

from ckptcli.autodiff import backward as _backward, functions as _functions, ops as _ops

del _backward, _functions, _ops
