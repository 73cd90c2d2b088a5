"""The nodes of composed functions: which ops, on which operands, in which order of ids.

A word is an op and the ids of its operands; `leaf` is a leaf. Operands come first and take the ids
from 0. `-` stands for the untracked leaves that the function makes.

Source: Burn 0.22.1, `burn-tensor/src/tensor/{activation,module,loss}`, `burn-nn`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ckptcli.autodiff.ops import OPERATIONS
from ckptcli.events import NodeCreated
from tests.helpers import backward, compact, expanded, leaf, of_type, watched

X, ROW, M = [[0.3, -0.8, 1.2, 0.1]], [1.0, 2.0, -1.0, 0.5], [[1.0, 2.0], [3.0, 4.0]]

# Function, shapes of its operands (given as data), further arguments, the nodes that it makes.
SEQUENCES: dict[str, tuple[str, list[Any], dict[str, Any], str]] = {
    "silu": ("silu", [X], {}, "sigmoid(0) mul(0,1)"),
    "gelu_approximate": (
        "gelu_approximate",
        [X],
        {},
        "powf_scalar(0) mul_scalar(1) add(0,2) mul_scalar(3) tanh(4) add_scalar(5) mul(0,6) "
        "mul_scalar(7)",
    ),
    "softmax": (
        "softmax",
        [X],
        {"dim": 1},
        "leaf max_dim(1) sub(0,2) exp(3) sum_dim(4) div(4,5)",
    ),
    "log_softmax": (
        "log_softmax",
        [X],
        {"dim": 1},
        "leaf max_dim(1) sub(0,2) exp(3) sum_dim(4) log(5) sub(3,6)",
    ),
    "softmin": (
        "softmin",
        [X],
        {"dim": 1},
        "neg(0) leaf max_dim(2) sub(1,3) exp(4) sum_dim(5) div(5,6)",
    ),
    "quiet_softmax": (
        "quiet_softmax",
        [X],
        {"dim": 1},
        "leaf max_dim(1) sub(0,2) exp(3) sum_dim(4) neg(2) exp(6) add(5,7) div(4,8)",
    ),
    "leaky_relu": ("leaky_relu", [X], {}, "mul_scalar(0) mask_where(0,1)"),
    "prelu": ("prelu", [X, ROW], {}, "reshape(1) mul(0,2) mask_where(0,3)"),
    "hard_sigmoid": (
        "hard_sigmoid",
        [X],
        {},
        "cast(0) mul_scalar(1) add_scalar(2) mask_fill(3) mask_fill(4) cast(5)",
    ),
    "hard_swish": (
        "hard_swish",
        [X],
        {},
        "cast(0) mul_scalar(1) add_scalar(2) mask_fill(3) mask_fill(4) cast(5) mul(0,6)",
    ),
    "softplus": (
        "softplus",
        [X],
        {"beta": 2.0},
        "mul_scalar(0) exp(1) add_scalar(2) log(3) div_scalar(4)",
    ),
    "mish": (
        "mish",
        [X],
        {},
        "mul_scalar(0) exp(1) add_scalar(2) log(3) div_scalar(4) tanh(5) mul(0,6)",
    ),
    "elu": ("elu", [X], {}, "exp(0) sub_scalar(1) mul_scalar(2) mask_where(0,3)"),
    "celu": ("celu", [X], {}, "div_scalar(0) exp(1) sub_scalar(2) mul_scalar(3) mask_where(0,4)"),
    "selu": (
        "selu",
        [X],
        {},
        "mul_scalar(0) exp(0) sub_scalar(2) mul_scalar(3) mask_where(4,1)",
    ),
    "hardtanh": ("hardtanh", [X], {}, "mask_fill(0) mask_fill(1)"),
    "relu6": ("relu6", [X], {}, "mask_fill(0) mask_fill(1)"),
    "threshold": ("threshold", [X], {"alpha": 0.1, "value": 2.0}, "mask_fill(0)"),
    "tanhshrink": ("tanhshrink", [X], {}, "tanh(0) sub(0,1)"),
    "softsign": ("softsign", [X], {}, "abs(0) add_scalar(1) div(0,2)"),
    "glu": ("glu", [X], {"dim": 1}, "slice(0) slice(0) sigmoid(2) mul(1,3)"),
    "shrink": ("shrink", [X], {}, "abs(0) sign(0) mul_scalar(2) sub(0,3) mask_fill(4)"),
    "soft_shrink": ("soft_shrink", [X], {}, "abs(0) sign(0) mul_scalar(2) sub(0,3) mask_fill(4)"),
    "hard_shrink": ("hard_shrink", [X], {}, "abs(0) mask_fill(0)"),
    "layer_norm": (
        "layer_norm",
        [X, ROW],
        {},
        "mean_dim(0) sub(0,2) mul(3,3) mean_dim(4) add_scalar(5) sqrt(6) div(3,7) reshape(1) "
        "mul(8,9)",
    ),
    "layer_norm with beta": (
        "layer_norm",
        [X, ROW, ROW],
        {},
        "mean_dim(0) sub(0,3) mul(4,4) mean_dim(5) add_scalar(6) sqrt(7) div(4,8) reshape(1) "
        "mul(9,10) reshape(2) add(11,12)",
    ),
    "rms_norm": (
        "rms_norm",
        [X, ROW],
        {},
        "mul(0,0) mean_dim(2) add_scalar(3) sqrt(4) div(0,5) reshape(1) mul(6,7)",
    ),
    "batch_norm": (
        "batch_norm",
        [X, ROW, ROW, ROW, [1.0, 2.0, 3.0, 4.0]],
        {},
        "reshape(1) reshape(2) reshape(3) reshape(4) add_scalar(8) sqrt(9) sub(0,7) div(11,10) "
        "mul(12,5) add(13,6)",
    ),
    "batch_norm_train": (
        "batch_norm_train",
        [X, ROW, ROW],
        {},
        "swap_dims(0) reshape(3) mean_dim(4) reshape(5) sub(0,6) mul(7,7) swap_dims(8) reshape(9) "
        "mean_dim(10) reshape(11) reshape(1) reshape(2) reshape(6) reshape(12) add_scalar(16) "
        "sqrt(17) sub(0,15) div(19,18) mul(20,13) add(21,14)",
    ),
    "linear": ("linear", [X, [[1.0]] * 4, [0.5]], {}, "linear(0,1,2)"),
    "linear of rank 1": (
        "linear",
        [ROW, [[1.0]] * 4],
        {},
        "reshape(0) linear(2,1) reshape(3)",
    ),
    "attention": (
        "attention",
        [[[M]]] * 3,
        {},
        "swap_dims(1) matmul(0,3) mul_scalar(4) max_dim(5) mask_fill(6) sub(5,7) exp(8) sum_dim(9) "
        "mask_fill(10) div(9,11) matmul(12,2)",
    ),
    "attention with everything": (
        "attention",
        [[[M]]] * 4,
        {"mask": [[True, False]], "softcap": 3.0, "is_causal": True},
        "swap_dims(1) matmul(0,4) mul_scalar(5) div_scalar(6) tanh(7) mul_scalar(8) mask_fill(9) "
        "mask_fill(10) add(11,3) max_dim(12) mask_fill(13) sub(12,14) exp(15) sum_dim(16) "
        "mask_fill(17) div(16,18) matmul(19,2)",
    ),
    "dropout": ("dropout", [X], {"probability": 0.5}, "leaf mul(0,1) mul_scalar(2)"),
    "dropout of nothing": ("dropout", [X], {"probability": 0.0}, ""),
    "mse": ("mse", [X, X], {}, "sub(0,1) mul(2,2) mean(3)"),
    "var": ("var", [X], {"dim": 1}, "mean_dim(0) sub(0,1) mul(2,2) sum_dim(3) div_scalar(4)"),
    "cross_entropy_with_logits": (
        "cross_entropy_with_logits",
        [X, X],
        {},
        "leaf max_dim(2) sub(0,3) exp(4) sum_dim(5) log(6) sub(4,7) mul(8,1) sum_dim(9) mean(10) "
        "neg(11)",
    ),
    "cross_entropy": (
        "cross_entropy",
        [X],
        {"classes": [2], "pad_classes": [3, 1]},
        "leaf max_dim(1) sub(0,2) exp(3) sum_dim(4) log(5) sub(3,6) gather(7) reshape(8) "
        "mask_fill(9) mean(10) neg(11)",
    ),
}


@pytest.mark.parametrize("name", SEQUENCES)
def test_nodes_of_a_composed_function(name: str) -> None:
    function, data, arguments, expected = SEQUENCES[name]
    dev, recorder = watched("balanced")
    operands = [leaf(dev, each) for each in data]
    made = len(recorder.events)
    OPERATIONS[function](*operands, **arguments)
    nodes = of_type(recorder.events[made:], NodeCreated)
    words = [
        "leaf" if node.op is None else f"{node.op}({','.join(map(str, node.parents))})"
        for node in nodes
    ]
    assert " ".join(words) == expected
    assert [node.node_id for node in nodes] == list(range(len(data), len(data) + len(nodes)))


# What is retrieved in backward of the sum of the function's output times itself.
LOGS = {
    "softmax of a leaf": (
        lambda x: x.softmax(1),
        "6 6 4 5 3",
        "6:6<0 2 3 4 5 6> 6 4 5 3",
    ),
    "softmax of an output": (
        lambda x: (x * 1.5).softmax(1),
        "7 7 5 6 4",
        "7:4<4 5 6 7> 7 5 6 4",
    ),
}


@pytest.mark.parametrize("strategy", ["none", "balanced"])
@pytest.mark.parametrize("name", LOGS)
def test_the_detached_maximum_decides_what_is_held(name: str, strategy: str) -> None:
    """That of an op's output is a constant, so the shifted input is held; that of a leaf is not."""
    function, none, balanced = LOGS[name]
    dev, recorder = watched(strategy)
    out = function(leaf(dev, X))
    backward((out * out).sum())
    assert compact(recorder.events) == expanded(none if strategy == "none" else balanced)


def test_the_layer_norm_walk() -> None:
    dev, recorder = watched("balanced")
    x = leaf(dev, X) * 1.5
    out = x.layer_norm(leaf(dev, ROW), leaf(dev, ROW))
    backward((out * out).sum())
    walk = "14:14<0 1 4 5 7 8 9 10 2 11 12 3 13 14> 14 10 11 5 9 8 5 5"
    assert compact(recorder.events) == expanded(walk)


@pytest.mark.parametrize(
    ("call", "ids"),
    [
        (lambda x: x.square(), 1),
        (lambda x: x.powi_scalar(0), 1),
        (lambda x: x.powi_scalar(1), 0),
        (lambda x: x.powi_scalar(-2), 2),
        (lambda x: x.powi(x * 0.0), 2),
        (lambda x: x.clamp(-1.0, 1.0), 2),
        (lambda x: x.clamp_min(0.0), 1),
        (lambda x: x.max(), 2),
        (lambda x: x.min(), 2),
        (lambda x: x.max_abs(), 3),
        (lambda x: x.max_abs_dim(1), 2),
        (lambda x: x.any(), 2),
        (lambda x: x.all(), 2),
        (lambda x: x.mask_select(x > 0.0), 2),
        (lambda x: x.topk_with_indices(2, 1), 2),
        (lambda x: x.cast("float64"), 0),
        (lambda x: x.cast("float32"), 1),
        (lambda x: x.unsqueeze(0), 1),
        (lambda x: x.squeeze(0), 1),
        (lambda x: x.flatten(0, 1), 1),
        (lambda x: x.narrow(1, 1, 2), 1),
        (lambda x: x.chunk(3, 1), 2),
        (lambda x: x.argmax(1), 0),
        (lambda x: x.argsort(1), 0),
        (lambda x: x.sort_with_indices(1), 1),
        (lambda x: x.max_dim_with_indices(1), 1),
        (lambda x: x.rfft(1), 3),
        (lambda x: x.unsqueeze(0).max_pool1d_with_indices(2), 2),
    ],
)
def test_ids_taken(call: Any, ids: int) -> None:
    dev, _ = watched("balanced")
    call(leaf(dev, X))
    assert leaf(dev, X).node.id - 1 == ids


def test_functions_that_give_no_tensor() -> None:
    x = leaf(watched("none")[0], [[0.0, 2.0, -1.0]])
    assert (bool(x.any()), bool(x.all())) == (True, False)
    assert (bool((x * 0.0).any()), bool((x * x + 1.0).all())) == (False, True)
    values, indices = x.topk_with_indices(2, 1)
    np.testing.assert_array_equal(values.numpy(), [[2.0, 0.0]])
    np.testing.assert_array_equal(indices, [[1, 0]])
    np.testing.assert_array_equal(x.argsort(1), [[2, 0, 1]])
    np.testing.assert_array_equal(x.min_dim_with_indices(1)[1], [[2]])
    pieces = [piece.shape for piece in x.chunk(2, 1)]
    assert pieces == [(1, 2), (1, 1)]
    image = leaf(x.device, [[[[1.0, 5.0], [7.0, 2.0]]]])
    np.testing.assert_array_equal(image.max_pool2d_with_indices(2)[1], [[[[2]]]])


def test_a_row_that_is_masked_as_a_whole_attends_to_nothing() -> None:
    dev, _ = watched("none")
    q, k, v = (leaf(dev, np.ones((1, 1, 2, 2))) for _ in range(3))
    out = q.attention(k, v, mask=[[True, True], [False, True]])
    np.testing.assert_array_equal(out.numpy()[0, 0], [[0.0, 0.0], [1.0, 1.0]])
