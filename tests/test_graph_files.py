"""Graph files: every fault is named by file, line and op before anything is printed."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest

from ckptcli.autodiff.ops import OPERATIONS
from ckptcli.cli.main import run_command
from ckptcli.errors import GraphFileError
from ckptcli.measure import machine
from ckptcli.workloads.graph import read_graph_file
from ckptcli.workloads.graph_case import signature_of
from tests.helpers import watched

LEAF = {"op": "leaf", "req": True, "data": [1, 2, 3, 4]}
GOOD = json.dumps({"ops": [LEAF, {"op": "sin", "in": [0]}]})


def case_of(*ops: dict[str, Any], **fields: Any) -> str:
    """A case of a leaf of shape [2, 2] and `ops` after it."""
    return json.dumps({"ops": [LEAF, *ops], **fields})


def leaf_case(**fields: Any) -> str:
    return json.dumps({"ops": [{"op": "leaf", **fields}]})


def op_case(name: str, inputs: Any = (0,), **arguments: Any) -> str:
    return case_of({"op": name, "in": list(inputs), **arguments})


HUGE = "1" + "0" * 400
"""An integer that JSON and Python have, and float64 has not."""

BAD: dict[str, tuple[str, str]] = {
    # What is no JSON.
    "cut off in the first op": ('{"ops": [{"op": "leaf", "da', "op 0: not a JSON object: "),
    "cut off in the second op": (GOOD[:-12], "op 1: not a JSON object: "),
    "nested too deep": ("[" * 100_000, "the JSON is nested too deep"),
    "too many digits": (
        op_case("add_scalar", c=0)[:-4] + "1" * 5001,
        "op 1: ",
    ),
    # What is no case.
    "a list": ("[1, 2]", "a case is an object with a list `ops`, got [1, 2]"),
    "no ops": ('{"root": 0}', "a case is an object with a list `ops`"),
    "ops that are no list": ('{"ops": 3}', "a case is an object with a list `ops`"),
    "an empty list": ('{"ops": []}', "`ops` is empty"),
    "a root that is too large": (case_of(root=1), "root 1 is not an index into the list of 1 op"),
    "a negative root": (case_of(root=-1), "root -1 is not"),
    "a root that is null": (case_of(root=None), "root null is not"),
    "a root that is true": (case_of({"op": "sin", "in": [0]}, root=True), "root true is not"),
    "a root that is a constant leaf": (leaf_case(data=[1]), "root 0 (`leaf`) is a constant"),
    "a root that is a constant cat": (
        json.dumps({"ops": [{"op": "leaf", "data": [1]}, {"op": "cat", "in": [0], "dim": 0}]}),
        "root 1 (`cat`) is a constant",
    ),
    "an unknown strategy": (case_of(strategy="nonee"), "unknown strategy `nonee`"),
    "a strategy that is a number": (case_of(strategy=3), "`strategy` must be a name, got 3"),
    # What is no op.
    "an op that is a number": ('{"ops": [3]}', "op 0: an op is an object with a name `op`, got 3"),
    "an op without a name": ('{"ops": [{}]}', "op 0: an op is an object with a name `op`"),
    "an unknown op": (op_case("sine"), "op 1: unknown op `sine`"),
    "no inputs": (case_of({"op": "sin"}), "op 1: `sin` needs `in`, a list of op indices, got null"),
    "inputs that are text": (op_case("sin", ["0"]), "op 1: `sin` needs `in`, a list of op indices"),
    "an input that is true": (op_case("sin", [True]), "op 1: `sin` needs `in`"),
    "a negative input": (op_case("sin", [-1]), "op 1: `sin` needs `in`"),
    "a forward reference": (
        case_of({"op": "sin", "in": [2]}, {"op": "sin", "in": [0]}),
        "op 1: `sin` refers to op 2, which comes later or is itself",
    ),
    "a reference to itself": (op_case("sin", [1]), "op 1: `sin` refers to op 1, which"),
    "too many inputs": (op_case("sin", [0, 0]), "op 1: `sin` takes 1 input, got 2"),
    "too few inputs": (op_case("add"), "op 1: `add` takes 2 inputs, got 1"),
    "nothing to join": (op_case("cat", [], dim=0), "op 1: `cat` needs at least one tensor"),
    # What is no argument.
    "no argument": (op_case("sum_dim"), "op 1: `sum_dim` needs `dim`"),
    "an unknown argument": (op_case("sin", dim=0), "op 1: `sin` has no `dim`"),
    "a dim that is null": (
        op_case("sum_dim", dim=None),
        "op 1: `dim` of `sum_dim` must be an integer, got null",
    ),
    "a dim that is true": (op_case("sum_dim", dim=True), "op 1: `dim` of `sum_dim` must be an"),
    "a dim with a point": (op_case("sum_dim", dim=1.0), "op 1: `dim` of `sum_dim` must be an"),
    "a dim that is too large": (
        op_case("swap_dims", dim1=0, dim2=2**63),
        "op 1: `dim2` of `swap_dims` must be an integer, got 9223372036854775808",
    ),
    "a dim that does not exist": (
        op_case("sum_dim", dim=2),
        "op 1: dim 2 of a tensor of shape [2, 2] does not exist",
    ),
    "a scalar that is text": (
        op_case("mul_scalar", c="3"),
        'op 1: `c` of `mul_scalar` must be a number that float64 can hold, got "3"',
    ),
    "a scalar that is too large": (
        op_case("add_scalar", c=int(HUGE)),
        "op 1: `c` of `add_scalar` must be a number that float64 can hold, got 1000",
    ),
    "a shape that is text": (
        op_case("reshape", shape="4"),
        'op 1: `shape` of `reshape` must be a list of integers, got "4"',
    ),
    "a shape of the wrong size": (op_case("reshape", shape=[3]), "op 1: `reshape` cannot take"),
    "a shape that no array has": (op_case("expand", shape=[2**40] * 4), "op 1: `expand` cannot"),
    "axes twice": (op_case("permute", axes=[0, 0]), "op 1: `permute` cannot take shape [2, 2]"),
    "a range of one bound": (
        op_case("slice", ranges=[[1]]),
        "op 1: `ranges` of `slice` must be a list of [start, stop] or [start, stop, step], got",
    ),
    "a range without a step": (op_case("slice", ranges=[[0, 2, 0]]), "op 1: `slice` cannot take"),
    "too many ranges": (op_case("slice", ranges=[[0, 1]] * 3), "op 1: a tensor of shape [2, 2]"),
    "a mask that is text": (
        op_case("mask_fill", mask="abc", c=0),
        'op 1: `mask` of `mask_fill` must be a list of true and false, got "abc"',
    ),
    "a mask of numbers": (
        op_case("mask_fill", mask=[True, 0], c=0),
        "op 1: `mask` of `mask_fill` has element 1 0, which is not true or false",
    ),
    "a mask of another size": (
        op_case("mask_fill", mask=[True, False, True], c=0),
        "op 1: `mask_fill` cannot take shape [2, 2]",
    ),
    "shapes that do not fit": (
        case_of({"op": "leaf", "data": [1, 2, 3]}, {"op": "add", "in": [0, 1]}),
        "op 2: `add` cannot take shape [2, 2] and [3]",
    ),
    "a product that does not fit": (
        case_of({"op": "leaf", "data": [1] * 6, "shape": [3, 2]}, {"op": "matmul", "in": [0, 1]}),
        "op 2: `matmul` cannot take shape [2, 2] and [3, 2]",
    ),
    "a product of vectors": (
        json.dumps({"ops": [{"op": "leaf", "data": [1, 2]}, {"op": "matmul", "in": [0, 0]}]}),
        "op 1: `matmul` cannot take shape [2] and [2]",
    ),
    # What is no leaf.
    "no data": (leaf_case(), "op 0: `leaf` needs `data`, a list of numbers"),
    "data that is a number": (leaf_case(data=3), "op 0: `data` of `leaf` must be a list of"),
    "empty data": (leaf_case(data=[]), "op 0: `data` of `leaf` must be a list of numbers, got []"),
    "empty rows": (leaf_case(data=[[], []]), "op 0: `data` of `leaf` must be a list of numbers"),
    "data of text": (leaf_case(data=["1", "2"]), 'op 0: `data` of `leaf` has element 0 "1", which'),
    "data of true": (leaf_case(data=[1, True]), "op 0: `data` of `leaf` has element 1 true"),
    "data of null": (leaf_case(data=[1, None]), "op 0: `data` of `leaf` has element 1 null"),
    "data too large": (leaf_case(data=[1, int(HUGE)]), "op 0: `data` of `leaf` has element 1 100"),
    "ragged data": (leaf_case(data=[[1, 2], [3]]), "op 0: `data` of `leaf` has lists of different"),
    "mixed data": (leaf_case(data=[[1], 2]), "op 0: `data` of `leaf` has lists of different"),
    "data nested too deep": (
        f'{{"ops": [{{"op": "leaf", "data": {"[" * 99}1{"]" * 99}}}]}}',
        "op 0",
    ),
    "a shape of text": (leaf_case(data=[1], shape=["1"]), "op 0: `shape` of `leaf` must be a list"),
    "a shape of another size": (
        leaf_case(data=[1], shape=[2]),
        "op 0: shape [2] is not filled by 1 number",
    ),
    "a shape of 100 dims": (leaf_case(data=[1], shape=[1] * 100), "op 0: shape [1, 1, 1"),
    "a req that is a number": (leaf_case(data=[1], req=1), "op 0: `req` must be true or false"),
    "an unknown key of a leaf": (leaf_case(data=[1], reg=True), "op 0: `leaf` has no `reg`"),
}
"""Name -> a bad case, and how its error begins behind file and line."""


@pytest.mark.parametrize("name", BAD)
def test_a_bad_case_is_named_by_file_line_and_op_and_nothing_is_printed(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The bad case is the third line, after a good case and an empty line."""
    text, message = BAD[name]
    monkeypatch.chdir(tmp_path)
    Path("bad.jsonl").write_text(f"{GOOD}\n\n{text}\n{GOOD}\n", encoding="utf-8")
    assert run_command(["log", "--workload", "graph:bad.jsonl", "-s", "none"]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith(f"Error: bad.jsonl:3: {message}")
    assert len(captured.err.splitlines()[0]) < 300
    assert "NoneType" not in captured.err


def test_an_object_over_many_lines_is_named_by_the_line_of_the_fault(tmp_path: Path) -> None:
    path = tmp_path / "g.json"
    path.write_text('\n\n{"ops": [\n  {"op": "leaf", "req": true, "data": [1]},\n  {"op": sin}\n]}')
    with pytest.raises(Exception, match=r"g\.json:5: op 1: not a JSON object: .* column 10"):
        read_graph_file(str(path))


@pytest.mark.parametrize("content", [b"\xff\xfe", b"", b"\n \n"])
def test_a_file_without_a_case(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "g.jsonl").write_bytes(content)
    assert run_command(["log", "--workload", f"graph:{tmp_path / 'g.jsonl'}"]) == 2


def test_a_path_that_cannot_be_one(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command(["log", "--workload", "graph:a\0b"]) == 2
    assert "cannot read graph file" in capsys.readouterr().err


def test_what_is_no_text_is_named_by_line_and_op(tmp_path: Path) -> None:
    path = tmp_path / "g.jsonl"
    path.write_bytes(GOOD.encode() + b"\n" + GOOD.encode()[:-2] + b"\xff}\n")
    with pytest.raises(
        GraphFileError, match=r"g\.jsonl:2: op 1: not UTF-8 text: byte \d+ is wrong"
    ):
        read_graph_file(str(path))


def test_a_byte_order_mark_is_no_fault(tmp_path: Path) -> None:
    (tmp_path / "g.jsonl").write_text(GOOD, encoding="utf-8-sig")
    (case,) = read_graph_file(str(tmp_path / "g.jsonl"))
    assert len(case.calls) == 2


@pytest.mark.parametrize("index", ["", "2", "-1", "x", "1" * 5000, "²"])
def test_an_index_that_the_file_does_not_have(
    index: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("two.jsonl").write_text(f"{GOOD}\n{GOOD}\n")
    assert run_command(["run", "--workload", f"graph:two.jsonl#{index}"]) == 2
    error = f"Error: graph file `two.jsonl` has no case `{index}`\n\nhint: use 0 to 1\n"
    told = capsys.readouterr().err
    begin, cut, end = told.partition(" [...] ")
    assert bool(cut) == (len(error) > 2000)
    assert error.startswith(begin)
    assert error.endswith(end)
    assert len(told) <= 2000


def test_numbers_that_are_not_finite_are_numbers(tmp_path: Path) -> None:
    (tmp_path / "g.json").write_text('{"ops": [{"op": "leaf", "req": true, "data": [NaN, 1e999]}]}')
    (case,) = read_graph_file(str(tmp_path / "g.json"))
    assert str(case.calls[0].data) == "[nan inf]"


PLAUSIBLE: dict[str, Any] = {
    "Any": [0],
    "bool": True,
    "float": 1.0,
    "float | None": 1.0,
    "int": 0,
    "int | None": 2,
    "mask": [True],
    "Sequence[Any]": [[0, 1]],
    "Sequence[int]": [0],
    "Sequence[Sequence[int]]": [[0, 1]],
    "Sizes": 1,
    "str": "add",
}
"""Kind of argument -> a value of it."""

WRONG = [None, True, "x", 1.5, -5, 2**63, [], [None], [[[0]]], {"a": 1}, [0, 0, 0, 0, 0]]


@pytest.mark.sampled(6)
@pytest.mark.parametrize("name", OPERATIONS)
def test_whatever_an_argument_is_the_case_is_right_or_refused(name: str, tmp_path: Path) -> None:
    signature = signature_of(name)
    needed = [tensor for tensor in signature.tensors if tensor not in signature.optional]
    given = {k: PLAUSIBLE[v] for k, v in signature.arguments.items() if k not in signature.optional}
    calls = [{**given, key: wrong} for key in signature.arguments for wrong in WRONG]
    path = tmp_path / "g.json"
    for arguments in (given, *calls):
        for shape in ([4], [1, 2, 2], [1, 1, 2, 2]):
            leaf = {**LEAF, "shape": shape}
            op = {"op": name, "in": [0] * len(needed), **arguments}
            path.write_text(json.dumps({"ops": [leaf, op]}))
            assert refusal(path).startswith(f"{path}:1: ")


def refusal(path: Path) -> str:
    """What a file of one case is refused with, or where that case is."""
    try:
        (case,) = read_graph_file(str(path))
    except GraphFileError as error:
        return error.message
    return f"{case.place}: fine"


@pytest.mark.parametrize(
    ("name", "shapes", "arguments", "count"),
    [
        ("sin", [[2, 3]], {}, 1),
        ("silu", [[2, 3]], {}, 2),
        ("matmul", [[2, 3], [3, 4]], {}, 1),
        ("matmul", [[5, 1, 3], [1, 3, 4]], {}, 3),
        ("swap_dims", [[2, 3]], {"dim1": 1, "dim2": -1}, 0),
        ("permute", [[2, 3]], {"axes": [0, 1]}, 0),
        ("powf_scalar", [[2, 3]], {"c": 1}, 0),
        ("powf_scalar", [[2, 3]], {"c": -2}, 2),
    ],
)
def test_ids_count_nodes_and_not_ops(
    name: str, shapes: list[list[int]], arguments: dict[str, Any], count: int, tmp_path: Path
) -> None:
    leaves = [{**LEAF, "data": [1.5] * math.prod(shape), "shape": shape} for shape in shapes]
    op = {"op": name, "in": list(range(len(leaves))), **arguments}
    (tmp_path / "g.json").write_text(json.dumps({"ops": [*leaves, op]}))
    (case,) = read_graph_file(str(tmp_path / "g.json"))
    tensors = case.load(watched("none")[0]).tensors()
    assert tensors[-1].node.id - tensors[len(leaves) - 1].node.id == count


@pytest.mark.slow
def test_what_exceeds_the_available_memory_is_refused_while_it_is_checked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    resource = pytest.importorskip("resource")
    limit = resource.getrlimit(resource.RLIMIT_AS)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(machine, "available_bytes", lambda: 2**25)
    monkeypatch.setattr(machine, "BLAS_THREAD_BYTES", 0)
    large = {"op": "expand", "in": [0], "shape": [5000, 1000, 2, 2]}
    Path("g.json").write_text(case_of(large, {"op": "exp", "in": [1]}))
    assert run_command(["log", "--workload", "graph:g.json"]) == 1
    assert "g.json:1: op 2: `exp` does not fit in memory" in capsys.readouterr().err
    assert resource.getrlimit(resource.RLIMIT_AS) == limit
    assert run_command(["log", "--workload", "graph:g.json", "--no-memory-check"]) == 0


def test_a_huge_program_is_refused_without_computing_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    huge = {"op": "expand", "in": [0], "shape": [1000000, 1000000, 2, 2]}
    Path("huge.jsonl").write_text(f"{GOOD}\n{case_of(huge, {'op': 'exp', 'in': [1]})}\n")
    for command in ("log --workload graph:huge.jsonl", "run --workload graph:huge.jsonl#1"):
        assert run_command(command.split()) == 1
        captured = capsys.readouterr()
        assert captured.out == ""
        assert "huge.jsonl:2: op 1: `expand` needs at least 29.1 TiB" in captured.err
        assert "hint: use smaller shapes in the file" in captured.err
