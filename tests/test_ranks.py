"""Every op on operands of every rank: a tensor, or an error that says of what.

A composed function's error may name the op in it that refused.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from ckptcli.autodiff.ops import OPERATIONS
from ckptcli.autodiff.tensor import Tensor
from ckptcli.errors import CkptError, ShapeError
from ckptcli.workloads.graph_case import signature_of
from tests.helpers import leaf, unwatched

SHAPES = ((3,), (2, 3), (1, 2, 3), (1, 1, 2, 3), (0,), (0, 3))
ARGUMENTS: dict[str, Any] = {
    "bool": True,
    "float": 0.5,
    "float | None": 0.5,
    "int": 1,
    "int | None": 1,
    "str": "nearest",
    "mask": [True],
    "Any": [0],
    "Sizes": 1,
    "Sequence[int]": [0],
    "Sequence[Any]": [[0, 1]],
    "Sequence[Sequence[int]]": [[0, 1]],
}


def value_or_error(call: Callable[[], Any]) -> Any:
    try:
        return call()
    except CkptError as error:
        return error


@pytest.mark.sampled(7)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("name", OPERATIONS)
def test_an_op_takes_its_operands_or_says_why_not(name: str, shape: tuple[int, ...]) -> None:
    signature = signature_of(name)
    for left_out in (signature.optional, frozenset[str]()):
        dev = unwatched("none")
        tensors = [leaf(dev, np.ones(shape)) for each in signature.tensors if each not in left_out]
        operands: list[Any] = [tensors] if signature.takes_list else list(tensors)
        arguments = {
            key: ARGUMENTS[kind] for key, kind in signature.arguments.items() if key not in left_out
        }
        named = dict(zip(signature.tensors, operands))
        with dev.backend.quiet():
            outcome = value_or_error(lambda: OPERATIONS[name](**named, **arguments))  # noqa: B023
        if isinstance(outcome, CkptError):
            assert re.search(r"`\w+`|a tensor of shape \[", outcome.message), outcome.message
        else:
            outputs = outcome if isinstance(outcome, tuple | list) else [outcome]
            assert outputs
            assert all(isinstance(output, Tensor) for output in outputs)


@pytest.mark.parametrize(
    ("call", "reason"),
    [
        (lambda x: x.embedding([0]), r"`embedding` needs weights of rank 2, got \[3\]"),
        (lambda x: x.batch_norm(x, x, x, x), r"`batch_norm` needs x of rank 2 or more.* \[3\]"),
        (lambda x: x.batch_norm_train(x, x), r"`batch_norm_train` needs x of rank 2.* \[3\]"),
        (
            lambda x: x.reshape([1, 1, 3]).conv1d(x.reshape([1, 1, 3]), stride=[1, 2]),
            r"`stride` is \[1, 2\] for 1 dim",
        ),
        (lambda x: x.cross_entropy([0]), r"`cross_entropy` needs logits of rank 2, got \[3\]"),
        (
            lambda x: x.reshape([1, 3]).cross_entropy([0, 1]),
            r"`cross_entropy` needs a class for each of 1 row",
        ),
    ],
)
def test_what_does_not_fit(call: Any, reason: str) -> None:
    with pytest.raises(ShapeError, match=reason):
        call(leaf(unwatched("none"), [1.0, 2.0, 3.0]))
