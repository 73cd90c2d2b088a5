"""Graph files on ops whose arguments or last operands may be left out."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ckptcli import device
from ckptcli.errors import GraphFileError
from ckptcli.workloads.graph import read_graph_file

LEAVES = [
    {"op": "leaf", "req": True, "data": [[1.0, 2.0], [3.0, 4.0]]},
    {"op": "leaf", "req": True, "data": [[0.5, 1.0], [-1.0, 2.0]]},
    {"op": "leaf", "req": True, "data": [1.0, -1.0]},
    {"op": "leaf", "req": True, "data": [[[-100.0, 2.0]], [[-100.0, 4.0]]]},
    {"op": "leaf", "req": True, "data": [[[[3.0]]]]},
    {"op": "leaf", "req": True, "data": [[[[0.0]], [[0.25]]]]},
]


def root_of(tmp_path: Path, call: dict[str, Any]) -> Any:
    path = tmp_path / "g.json"
    path.write_text(json.dumps({"ops": [*LEAVES, call]}))
    (case,) = read_graph_file(str(path))
    return case.load(device().autodiff()).forward().root.numpy()


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        ({"op": "linear", "in": [0, 1]}, [[-1.5, 5.0], [-2.5, 11.0]]),
        ({"op": "linear", "in": [0, 1, 2]}, [[-0.5, 4.0], [-1.5, 10.0]]),
        ({"op": "sort", "in": [1], "dim": 0}, [[-1.0, 1.0], [0.5, 2.0]]),
        ({"op": "sort", "in": [1], "dim": 0, "descending": True}, [[0.5, 2.0], [-1.0, 1.0]]),
        ({"op": "select", "in": [0], "dim": 1, "indices": [1]}, [[2.0], [4.0]]),
        (
            {"op": "mask_where", "in": [0, 1], "mask": [True, False, False, True]},
            [[0.5, 2.0], [3.0, 2.0]],
        ),
        (
            {"op": "scatter", "in": [0, 1], "dim": 0, "indices": [[0, 0], [1, 1]]},
            [[1.5, 3.0], [2.0, 6.0]],
        ),
        ({"op": "leaky_relu", "in": [2]}, [1.0, -0.01]),
        (
            {
                "op": "ctc_loss",
                "in": [3],
                "targets": [[1]],
                "input_lengths": [2],
                "target_lengths": [1],
            },
            [-6.0],
        ),
        ({"op": "deform_conv2d", "in": [4, 5, 4]}, [[[[6.75]]]]),
    ],
)
def test_what_may_be_left_out(tmp_path: Path, call: dict[str, Any], expected: Any) -> None:
    assert root_of(tmp_path, call).tolist() == expected


@pytest.mark.parametrize(
    ("call", "reason"),
    [
        ({"op": "linear", "in": [0]}, "`linear` takes 2 to 3 inputs, got 1"),
        ({"op": "mul", "in": [0]}, "`mul` takes 2 inputs, got 1"),
        ({"op": "sort", "in": [1]}, "`sort` needs `dim`"),
        ({"op": "sort", "in": [1], "dim": 0, "up": True}, "`sort` has no `up`"),
        ({"op": "select", "in": [0], "dim": 1, "indices": [2]}, "an index outside of 0 to 1"),
        ({"op": "select", "in": [0], "dim": 1, "indices": [0.5]}, "which is not an integer"),
        ({"op": "conv1d", "in": [0, 1]}, "needs x and weight of rank 3"),
        ({"op": "interpolate", "in": [0], "output_size": [1, 1], "mode": "x"}, "needs rank 4"),
        ({"op": "scatter_nd", "in": [0, 1], "indices": [[0]], "update": "no"}, "has no update"),
        ({"op": "dropout", "in": [0], "probability": 1}, "from 0 to below 1"),
    ],
)
def test_a_fault_names_the_op(tmp_path: Path, call: dict[str, Any], reason: str) -> None:
    with pytest.raises(GraphFileError, match=rf"g\.json:1: op 6: .*{reason}"):
        root_of(tmp_path, call)
