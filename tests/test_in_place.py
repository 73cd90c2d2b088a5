"""Writing a result over an operand changes no bit: the ground that flat programs stand on."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ckptcli.backends import numpy_namespace
from ckptcli.replay.in_place import _KERNELS, OPERANDS
from tests.helpers import same_bits

SIZES = [(1,), (7,), (16,), (33, 3), (70_001,)]
"""Below and above a vector of the processor, and beyond a block of our own kernels."""


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("function", sorted(OPERANDS))
def test_a_function_gives_the_same_bits_over_an_operand(function: str, dtype: str) -> None:
    call = getattr(numpy_namespace, function)
    random = np.random.default_rng(0)
    for shape in SIZES:
        operands = [random.normal(0.0, 3.0, shape).astype(dtype) for _ in range(OPERANDS[function])]
        with np.errstate(all="ignore"):
            expected = call(*[array.copy() for array in operands])
            for place in range(function in _KERNELS, len(operands)):
                own: list[Any] = [array.copy() for array in operands]
                assert same_bits([call(*own, own[place])], [expected])
                assert same_bits([own[place]], [expected])


def test_a_scalar_operand_changes_nothing_of_that() -> None:
    x = np.linspace(-2.0, 2.0, 101)
    for function in ("add", "divide", "multiply", "subtract"):
        call = getattr(numpy_namespace, function)
        own = x.copy()
        assert same_bits([call(own, 1.7, own)], [call(x, 1.7)])
