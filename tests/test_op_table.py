"""The op table against Burn's: each op's bound, explicit checkpoints in order, and raw state.

Source: Burn 0.22.1, `burn-autodiff/src/ops/{tensor,activation,module}.rs`.
"""

from __future__ import annotations

import gc

import pytest

from ckptcli import device
from ckptcli.autodiff.describe import descriptions
from ckptcli.autodiff.ops import DECLARATIONS
from ckptcli.backends.ledger import Ledger, TrackedBackend
from ckptcli.backends.numpy_backend import NumpyBackend
from tests.gradient_cases import CASES
from tests.helpers import backward, leaf

OTHER = ("lhs if rhs tracked", "rhs if lhs tracked")

# Bound -> what backward needs -> ops.
TABLE: dict[str, dict[tuple[str, ...], str]] = {
    "memory": {
        (): "add sub add_scalar sub_scalar remainder_scalar mul_scalar div_scalar neg sign "
        "swap_dims permute flip reshape expand slice slice_assign select select_add select_assign "
        "repeat_dim round floor ceil trunc",
        ("x",): "recip exp log log1p sqrt abs cos sin tanh cosh sinh tan asin acos atan asinh "
        "acosh atanh erf powf_scalar gelu relu sigmoid log_sigmoid",
        OTHER: "mul",
        ("lhs if rhs tracked", "rhs"): "div remainder",
        ("lhs", "rhs"): "powf",
        ("y", "x"): "atan2",
    },
    "compute": {
        (): "gather gather_nd scatter_add scatter_assign scatter_nd_add scatter_nd_assign "
        "scatter_nd_mul scatter_nd_min scatter_nd_max mask_where mask_fill mean sum mean_dim "
        "sum_dim cumsum prod prod_dim cumprod cummin cummax max_dim min_dim sort cast unfold "
        "embedding rfft irfft",
        OTHER: "matmul cross",
        ("lhs", "rhs"): "hypot",
        ("x if weight tracked", "weight if x tracked"): "linear",
        ("x", "weight", "bias"): "conv1d conv2d conv3d conv_transpose1d conv_transpose2d "
        "conv_transpose3d",
        ("x", "offset", "weight", "mask", "bias"): "deform_conv2d",
        ("log_probs",): "ctc_loss",
        ("x",): "avg_pool1d avg_pool2d adaptive_avg_pool1d adaptive_avg_pool2d "
        "adaptive_avg_pool3d interpolate max_pool1d max_pool2d",
        ("its output",): "svd",
    },
    "ambiguous": {(): "cat"},
}
EXPECTED = {
    name: (bound, needs)
    for bound, groups in TABLE.items()
    for needs, names in groups.items()
    for name in names.split()
}
HOLDS_OPERANDS = {
    "prod": "input and output by value",
    "prod_dim": "input and output by value",
    "cumprod": "input by value",
    "cummin": "input by value",
    "cummax": "input by value",
    "embedding": "the weights by value, the integer indices",
    "scatter_nd_mul": (
        "each operand that the other's gradient needs, by value; the integer indices"
    ),
    "scatter_nd_min": "both operands by value, the integer indices",
    "scatter_nd_max": "both operands by value, the integer indices",
}


def test_bounds_and_checkpoints_are_burns() -> None:
    known = descriptions()
    assert {name: (known[name].bound, known[name].needs) for name in DECLARATIONS} == EXPECTED


def test_raw_operands_are_held_where_burn_holds_them() -> None:
    holding = {name: op.note for name, op in DECLARATIONS.items() if "by value" in op.note}
    assert holding == HOLDS_OPERANDS


@pytest.mark.sampled(5)
@pytest.mark.parametrize("strategy", ["none", "balanced"])
@pytest.mark.parametrize("name", CASES)
def test_the_account_of_every_op_closes(name: str, strategy: str) -> None:
    """Every array that an op makes is in the ledger, and is gone after the pass."""
    for case in CASES[name]:
        ledger = Ledger()
        base = device().autodiff().gradient_checkpointing(strategy)
        dev = base.watched_by(None, TrackedBackend(NumpyBackend(), ledger))
        gc.disable()
        try:
            leaves = [leaf(dev, array) for array in case.operands()]
            before = ledger.bytes_in_use
            out = case.function(*leaves)
            gradients = backward((out * out).sum())
            del gradients, out
            assert ledger.bytes_in_use == before
        finally:
            gc.enable()
