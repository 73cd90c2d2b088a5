"""Arguments of a graph file that ask for more than there is: refused before any of it is done."""

from __future__ import annotations

import json
import random
import subprocess
import sys
import tracemalloc
from pathlib import Path
from typing import Any

import pytest

from ckptcli.autodiff.axis_maps import bin_means, cubic, linear, nearest, window_means
from ckptcli.autodiff.ops import OPERATIONS
from ckptcli.cli.main import run_command
from ckptcli.errors import GraphFileError
from ckptcli.workloads.graph import read_graph_file
from ckptcli.workloads.graph_case import signature_of
from ckptcli.workloads.graph_sizes import needed_bytes
from tests.argument_calls import CALLS, changed, places
from tests.fuzz_arguments import graph

LEAF = {"op": "leaf", "req": True, "data": [1.0, 2.0, 3.0, 4.0]}
MAPS = (window_means, bin_means, nearest, linear, cubic)
"""What is kept of earlier ops, and so not taken again."""


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
        (
            [1, 1, 4],
            {"op": "max_pool1d", "kernel_size": 2, "stride": 2**48, "padding": 1}
            | {"ceil_mode": True},
        ),
        (
            [1, 1, 2, 2],
            {"op": "max_pool2d", "kernel_size": 2, "stride": [1, 2**48], "padding": 1}
            | {"ceil_mode": True},
        ),
    ],
    ids=lambda value: value["op"] if isinstance(value, dict) else "",
)
def test_an_argument_that_nothing_can_hold(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], shape: list[int], call: dict[str, Any]
) -> None:
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


def test_every_op_that_takes_integers_has_a_call() -> None:
    kinds = ("int", "int | None", "Sizes", "Any", "Sequence[")
    names = {
        name
        for name in OPERATIONS
        if any(kind.startswith(kinds) for kind in signature_of(name).arguments.values())
    }
    assert names == {call["op"] for _, call in CALLS}


@pytest.mark.parametrize(
    "seed", [1, *(pytest.param(seed, marks=pytest.mark.slow) for seed in "23")]
)
def test_an_integer_that_no_program_has_is_refused_before_it_is_worked_on(seed: int) -> None:
    """In a process with half a GiB to spare, in which a case that goes on is killed."""
    count = "400" if seed == 1 else "2000"
    words = ["-m", "tests.fuzz_arguments", "--seed", str(seed), "--count", count]
    done = subprocess.run([sys.executable, *words], capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stderr) == (0, ""), done.stdout


def test_what_is_needed_is_no_more_than_what_is_taken(tmp_path: Path) -> None:
    """Whatever the arguments, an op that can be computed takes as much as would refuse it."""
    draw = random.Random(5)
    taken = []
    for shapes, call in CALLS * 3:
        for place in draw.sample(places(call), 1):
            call = changed(call, place, draw.choice((-1, 0, 1, 2, 5, 40, 700)))
        needed = needed_bytes(call["op"], [tuple(shape) for shape in shapes], call)
        (tmp_path / "g.json").write_text(graph(shapes, call))
        for made in MAPS:
            made.cache_clear()
        tracemalloc.start()
        try:
            read_graph_file(str(tmp_path / "g.json"))
        except GraphFileError:
            continue
        finally:
            peak = tracemalloc.get_traced_memory()[1]
            tracemalloc.stop()
        taken.append(needed)
        if call["op"] != "expand":  # the gradient of a view is taken in backward
            assert needed <= peak, call
    assert sum(needed > 10_000 for needed in taken) > 10
