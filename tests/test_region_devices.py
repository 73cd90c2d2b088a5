"""Whose region an op belongs to when its operands are on different device objects.

A region is opened on one object; an op belongs to it if any of its operands does, wherever that one
stands among the others.
"""

from __future__ import annotations

import pytest

from ckptcli import Tensor, device
from tests.helpers import leaf

SHAPES = ([[0.5, 0.25]], [[1.0, 2.0], [3.0, 4.0]], [0.1, 0.2])
"""Input, weight and bias of a linear layer."""


@pytest.mark.parametrize("inside", range(3))
def test_an_op_of_three_operands_belongs_to_the_region_of_any(inside: int) -> None:
    outer, opened = (device().autodiff() for _ in range(2))
    operands: list[Tensor] = [
        leaf(opened if i == inside else outer, data) for i, data in enumerate(SHAPES)
    ]
    x, weight, bias = operands
    with operands[inside].region("mine"):
        y = x.linear(weight, bias)
    region = y.node.region
    assert region is not None
    assert region.name == "mine"
