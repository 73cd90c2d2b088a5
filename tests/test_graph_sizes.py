"""Arguments of a graph file that ask for more than there is: refused before any of it is done."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ckptcli.cli.main import run_command

LEAF = {"op": "leaf", "req": True, "data": [1.0, 2.0, 3.0, 4.0]}


def told(tmp_path: Path, capsys: pytest.CaptureFixture[str], *ops: dict[str, Any]) -> str:
    path = tmp_path / "g.jsonl"
    path.write_text(json.dumps({"ops": list(ops)}))
    assert run_command(["log", "--workload", f"graph:{path}"]) in (1, 2)
    return capsys.readouterr().err


@pytest.mark.parametrize(
    ("shape", "call"),
    [
        (
            [1, 1, 4],
            {"op": "avg_pool1d", "kernel_size": 2**62, "stride": 1, "padding": 0}
            | {"ceil_mode": True, "count_include_pad": True},
        ),
        (
            [1, 1, 4],
            {"op": "avg_pool1d", "kernel_size": 2, "stride": 1, "padding": 10**10}
            | {"ceil_mode": False, "count_include_pad": True},
        ),
        ([1, 1, 4], {"op": "max_pool1d", "kernel_size": 2, "padding": 10**14, "stride": 1}),
        ([1, 1, 2, 2], {"op": "adaptive_avg_pool2d", "output_size": [2**40, 1]}),
        ([1, 1, 2, 2], {"op": "interpolate", "output_size": [2**31, 2**31], "mode": "nearest"}),
        ([1, 4], {"op": "expand", "shape": [10**14, 4]}),
        ([1, 4], {"op": "repeat_dim", "dim": 0, "times": 10**14}),
    ],
    ids=lambda value: value["op"] if isinstance(value, dict) else "",
)
def test_an_argument_that_nothing_can_hold(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], shape: list[int], call: dict[str, Any]
) -> None:
    from ckptcli.workloads.graph_case import signature_of

    known = signature_of(call["op"]).arguments
    arguments = {key: value for key, value in call.items() if key in known or key == "op"}
    message = told(tmp_path, capsys, LEAF | {"shape": shape}, arguments | {"in": [0]})
    assert f"g.jsonl:1: op 1: `{call['op']}` " in message
    assert "needs at least " in message or "no array has " in message


def test_a_message_cuts_a_long_value(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "g.jsonl"
    path.write_text(json.dumps({"ops": [{"op": "a" * 200_000}]}))
    assert run_command(["log", "--workload", f"graph:{path}"]) == 2
    message = capsys.readouterr().err
    assert len(message) < 3000
    assert "g.jsonl:1: op 0: unknown op `aaa" in message
    assert "`ckpt ops` lists all" in message
