"""Traced tensors: lazy tensors that build a graph, evaluated on demand.

`checkpoint()` evaluates now and continues from a data leaf; the old graph stays for the gradient.
Nothing here records on the tape of `ckptcli.autodiff` or knows an array library by name.

Source: the behaviour of tenferro-ad 0.8.0's `TracedTensor`.
"""

from __future__ import annotations

from ckptcli.traced.gradient import grad as grad, vjp as vjp
from ckptcli.traced.ops import svd as svd, tensordot as tensordot
from ckptcli.traced.tensor import Tensor as Tensor
from ckptcli.traced.tracer import Tracer as Tracer
