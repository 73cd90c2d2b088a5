"""Each op by itself: what is predicted of a program around it is what the ledger counts."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ckptcli import Tensor
from tests.case_kit import Case
from tests.gradient_cases import CASES
from tests.simulated import FunctionWorkload, assert_predicted

STRATEGIES = ("none", "balanced", "remat", "sqrt", "random:1", "random:2")


def _large(case: Case) -> list[Any]:
    """Operands of the case, each element repeated in memory that is worth counting."""
    return [np.asarray(array) for array in case.operands()]


def program_of_the_op(case: Case) -> FunctionWorkload:
    """The op on values that are made, in a layer each: on tracked values, then on constants."""

    def program(*leaves: Tensor) -> Tensor:
        made: Any = None
        for layer in leaves[0].device.layers(2):
            operands = [leaf * 1.0 if layer == 0 else (leaf.detach() * 1.0) for leaf in leaves]
            result = case.function(*operands)
            value = result * result
            if layer == 1:
                value = value * leaves[0].sum()
            made = value.sum() if made is None else made + value.sum()
        return made

    return FunctionWorkload(_large(case), program)


@pytest.mark.sampled(4)
@pytest.mark.parametrize("op", sorted(CASES))
def test_a_program_of_the_op_is_predicted_to_the_byte(op: str) -> None:
    assert_predicted(program_of_the_op(CASES[op][0]), STRATEGIES)
