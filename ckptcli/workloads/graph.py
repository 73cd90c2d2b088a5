"""Reads graph files: text in, checked cases out, every fault named by file, line and op index."""

from __future__ import annotations

import json
import math
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NoReturn

from ckptcli.autodiff.ops import OPERATIONS
from ckptcli.checkpoint.strategies.registry import parse_strategy
from ckptcli.errors import GraphFileError, UnknownNameError, UsageError
from ckptcli.options.workload import WorkloadOptions
from ckptcli.units import count
from ckptcli.workloads.base import Workload
from ckptcli.workloads.graph_case import GraphCase, OpCall, signature_of
from ckptcli.workloads.graph_values import Misfit, argument, is_index, number_array, shown
from ckptcli.workloads.registry import workload

_LEAF_KEYS = {"op", "req", "data", "shape"}


def read_graph_file(path: str) -> list[GraphCase]:
    """All cases of a file, checked by running each forward pass once.

    Raises:
        GraphFileError: the file cannot be read, or a case is not a program.
    """
    try:
        data = Path(path).read_bytes()
    except (OSError, ValueError) as error:  # ValueError: a path that cannot be one
        reason = getattr(error, "strerror", None) or str(error)
        raise GraphFileError(f"cannot read graph file `{path}`: {reason}") from error
    text = _text(path, data)
    cases = [
        _case(path, line, index, fields)
        for index, (line, fields) in enumerate(_objects(path, text))
    ]
    if not cases:
        raise GraphFileError(f"graph file `{path}` holds no case")
    for case in cases:
        case.check()
    return cases


@workload("graph", argument="FILE")
def open_graph(argument: str, options: WorkloadOptions) -> list[Workload]:
    """`graph:FILE` or `graph:FILE#INDEX`: all cases of a file, or the one with this index.

    Raises:
        UsageError: no file, or an index that the file does not have.
        GraphFileError: the file is not a list of programs.
    """
    path, mark, index_text = argument.rpartition("#")
    if not mark or os.path.exists(argument):  # unlike Path's, this takes any text
        path, index_text = argument, ""
    if not path:
        raise UsageError("workload `graph` needs a file", "use graph:FILE or graph:FILE#INDEX")
    cases = read_graph_file(path)
    if path == argument:
        return list(cases)
    position = int(index_text) if re.fullmatch("[0-9]{1,9}", index_text) else len(cases)
    if position >= len(cases):
        raise UsageError(
            f"graph file `{path}` has no case `{index_text}`", f"use 0 to {len(cases) - 1}"
        )
    return [cases[position]]


def _text(path: str, data: bytes) -> str:
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        before = data[: error.start]
        line = before.count(b"\n") + 1
        op = _op_before(before[before.rfind(b"\n") + 1 :].decode("latin-1"), len(before))
        raise GraphFileError(
            f"{path}:{line}: op {op}: not UTF-8 text: byte {error.start} is wrong",
            "save the file as UTF-8",
        ) from error


def _objects(path: str, text: str) -> Iterator[tuple[int, Any]]:
    """Line number and object of each case: JSON Lines, or one object over many lines."""
    lines = [(number, line) for number, line in enumerate(text.split("\n"), 1) if line.strip()]
    if len(lines) > 1 and not any(_is_object(line) for _, line in lines):
        first = lines[0][0]
        lines = [(first, "\n".join(text.split("\n")[first - 1 :]))]
    for number, line in lines:
        try:
            yield number, json.loads(line)
        except (ValueError, RecursionError) as error:
            _raise_json(path, number, line, error)


def _is_object(line: str) -> bool:
    """Whether a line is a case by itself; an op on a line of its own has no `ops`."""
    try:
        fields = json.loads(line)
    except (ValueError, RecursionError):
        return False
    return isinstance(fields, dict) and "ops" in fields


def _raise_json(path: str, line: int, text: str, error: Exception) -> NoReturn:
    """`text` begins in `line`."""
    if isinstance(error, RecursionError):
        raise GraphFileError(f"{path}:{line}: the JSON is nested too deep") from error
    if isinstance(error, json.JSONDecodeError):
        place = f"{path}:{line - 1 + error.lineno}: op {_op_before(text, error.pos)}"
        raise GraphFileError(
            f"{place}: not a JSON object: {error.msg} at column {error.colno}",
            "one case is one object on one line; is the line cut off?",
        ) from error
    digits = re.search(r"\d{1000}", text)  # what is left: more digits than Python reads
    position = digits.start() if digits else 0
    line += text.count("\n", 0, position)
    raise GraphFileError(
        f"{path}:{line}: op {_op_before(text, position)}: a number has too many digits"
    ) from error


def _op_before(text: str, position: int) -> int:
    return max(0, text.count('"op"', 0, position) - 1)


def _case(path: str, line: int, index: int, fields: Any) -> GraphCase:
    place = f"{path}:{line}"
    if not isinstance(fields, dict) or not isinstance(fields.get("ops"), list):
        raise GraphFileError(f"{place}: a case is an object with a list `ops`, got {shown(fields)}")
    if not fields["ops"]:
        raise GraphFileError(f"{place}: `ops` is empty", "a case has at least one op")
    calls: list[OpCall] = []
    for op_index, entry in enumerate(fields["ops"]):
        calls.append(_call(f"{place}: op {op_index}", op_index, entry))
    root = fields.get("root", len(calls) - 1)
    if not is_index(root) or root >= len(calls):
        raise GraphFileError(
            f"{place}: root {shown(root)} is not an index into the list of "
            f"{count(len(calls), 'op')}"
        )
    return GraphCase(place, index, tuple(calls), root, _strategy(place, fields.get("strategy")))


def _strategy(place: str, name: Any) -> str | None:
    if name is not None and not isinstance(name, str):
        raise GraphFileError(f"{place}: `strategy` must be a name, got {shown(name)}")
    try:
        return None if name is None else parse_strategy(name).name
    except UsageError as error:
        raise _renamed(place, error) from None


def _call(place: str, op_index: int, entry: Any) -> OpCall:
    if not isinstance(entry, dict) or not isinstance(entry.get("op"), str):
        raise GraphFileError(f"{place}: an op is an object with a name `op`, got {shown(entry)}")
    name = entry["op"]
    if name == "leaf":
        return _leaf(place, entry)
    if name not in OPERATIONS:
        raise _renamed(place, UnknownNameError("op", name, [*OPERATIONS, "leaf"], "ckpt ops"))
    inputs = entry.get("in")
    if not isinstance(inputs, list) or not all(map(is_index, inputs)):
        raise GraphFileError(
            f"{place}: `{name}` needs `in`, a list of op indices, got {shown(inputs)}"
        )
    for i in inputs:
        if i >= op_index:
            raise GraphFileError(
                f"{place}: `{name}` refers to op {i}, which comes later or is itself",
                "an op may use only ops before it",
            )
    return OpCall(name, tuple(inputs), _arguments(place, name, inputs, entry))


def _arguments(place: str, name: str, inputs: list[int], entry: dict[str, Any]) -> dict[str, Any]:
    signature = signature_of(name)
    if not signature.takes(len(inputs)):
        raise GraphFileError(f"{place}: `{name}` takes {signature.inputs_text}, got {len(inputs)}")
    for key in signature.arguments:
        if key not in entry and key not in signature.optional:
            raise GraphFileError(f"{place}: `{name}` needs `{key}`")
    for key in entry:
        if key not in ("op", "in", *signature.arguments):
            raise GraphFileError(f"{place}: `{name}` has no `{key}`")
    arguments = {}
    for key, kind in signature.arguments.items():
        if key not in entry:
            continue
        try:
            arguments[key] = argument(kind, entry[key])
        except Misfit as misfit:
            raise GraphFileError(f"{place}: `{key}` of `{name}` {misfit}") from None
    return arguments


def _leaf(place: str, entry: dict[str, Any]) -> OpCall:
    unknown = set(entry) - _LEAF_KEYS
    if unknown:
        raise GraphFileError(f"{place}: `leaf` has no `{min(unknown)}`")
    requires_grad = entry.get("req", False)
    if not isinstance(requires_grad, bool):
        raise GraphFileError(f"{place}: `req` must be true or false, got {shown(requires_grad)}")
    if "data" not in entry:
        raise GraphFileError(f"{place}: `leaf` needs `data`, a list of numbers")
    try:
        data = number_array(entry["data"])
    except Misfit as misfit:
        raise GraphFileError(f"{place}: `data` of `leaf` {misfit}") from None
    shape = entry.get("shape")
    if shape is None and data.ndim == 1:
        side = math.isqrt(data.size)
        shape = [side, side] if side * side == data.size else [data.size]
    if shape is not None:
        data = _shaped(place, data, shape)
    return OpCall("leaf", (), {}, data, requires_grad)


def _shaped(place: str, data: Any, shape: Any) -> Any:
    if not isinstance(shape, list) or not shape or not all(map(is_index, shape)):
        raise GraphFileError(
            f"{place}: `shape` of `leaf` must be a list of sizes, got {shown(shape)}"
        )
    if math.prod(shape) != data.size:
        numbers = count(data.size, "number")
        raise GraphFileError(f"{place}: shape {shown(shape)} is not filled by {numbers}")
    try:
        return data.reshape(shape)
    except ValueError as error:  # more dims than an array can have
        raise GraphFileError(f"{place}: shape {shown(shape)} is impossible: {error}") from error


def _renamed(place: str, error: UsageError) -> GraphFileError:
    return GraphFileError(f"{place}: {error.message}", error.hint)
