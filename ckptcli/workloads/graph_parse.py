"""Reads graph files: text in, checked cases out, every fault named by file, line and op index."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from ckptcli.autodiff.device import device
from ckptcli.autodiff.ops import OPERATIONS
from ckptcli.errors import GraphFileError, UnknownNameError, UsageError
from ckptcli.workloads.base import Workload
from ckptcli.workloads.graph_case import GraphCase, OpCall, signature_of
from ckptcli.workloads.registry import WorkloadOptions, workload

_LEAF_KEYS = {"op", "req", "data", "shape"}


def read_graph_file(path: str) -> list[GraphCase]:
    """All cases of a file, checked by running each forward pass once.

    Raises:
        GraphFileError: the file cannot be read, or a case is not a program.
    """
    try:
        text = Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise GraphFileError(f"cannot read graph file `{path}`: {reason}") from error
    cases = [
        _case(path, line, index, fields)
        for index, (line, fields) in enumerate(_objects(path, text))
    ]
    if not cases:
        raise GraphFileError(f"graph file `{path}` holds no case")
    target = device("numpy").autodiff().watched_by(None)
    with target.backend.quiet():
        for case in cases:
            case.load(target).forward()
    return cases


@workload("graph")
def open_graph(argument: str, options: WorkloadOptions) -> list[Workload]:
    """`graph:FILE` or `graph:FILE#INDEX`: all cases of a file, or the one with this index.

    Raises:
        UsageError: no file, or an index that the file does not have.
        GraphFileError: the file is not a list of programs.
    """
    path, mark, index_text = argument.rpartition("#")
    if not mark or Path(argument).exists():
        path, index_text = argument, ""
    if not path:
        raise UsageError("workload `graph` needs a file", "use graph:FILE or graph:FILE#INDEX")
    cases = read_graph_file(path)
    if not index_text:
        return list(cases)
    if not index_text.isdecimal() or int(index_text) >= len(cases):
        raise UsageError(
            f"graph file `{path}` has no case `{index_text}`", f"use 0 to {len(cases) - 1}"
        )
    return [cases[int(index_text)]]


def _objects(path: str, text: str) -> Iterator[tuple[int, Any]]:
    """Line number and object of each case: JSON Lines, or one object over many lines."""
    lines = [(number, line) for number, line in enumerate(text.split("\n"), 1) if line.strip()]
    if len(lines) > 1 and not any(_is_object(line) for _, line in lines):
        try:
            yield lines[0][0], json.loads(text)
        except json.JSONDecodeError as error:
            _raise_json(path, error.lineno, text, error)
        return
    for number, line in lines:
        try:
            yield number, json.loads(line)
        except json.JSONDecodeError as error:
            _raise_json(path, number, line, error)


def _is_object(line: str) -> bool:
    """Whether a line is a case by itself; an op on a line of its own has no `ops`."""
    try:
        fields = json.loads(line)
    except json.JSONDecodeError:
        return False
    return isinstance(fields, dict) and "ops" in fields


def _raise_json(path: str, line: int, text: str, error: json.JSONDecodeError) -> None:
    op_index = max(0, text[: error.pos].count('"op"') - 1)
    raise GraphFileError(
        f"{path}:{line}: op {op_index}: not a JSON object: {error.msg} at column {error.colno}",
        "one case is one object on one line; is the line cut off?",
    )


def _case(path: str, line: int, index: int, fields: Any) -> GraphCase:
    place = f"{path}:{line}"
    if not isinstance(fields, dict) or not isinstance(fields.get("ops"), list):
        raise GraphFileError(f"{place}: a case is an object with a list `ops`")
    calls: list[OpCall] = []
    for op_index, entry in enumerate(fields["ops"]):
        calls.append(_call(f"{place}: op {op_index}", op_index, entry))
    root = fields.get("root", len(calls) - 1)
    if not _is_index(root) or root >= len(calls):
        raise GraphFileError(f"{place}: root {root!r} is not the index of one of {len(calls)} ops")
    strategy = fields.get("strategy")
    if strategy is not None and not isinstance(strategy, str):
        raise GraphFileError(f"{place}: `strategy` must be a name, got {strategy!r}")
    return GraphCase(place, index, tuple(calls), root, strategy)


def _call(place: str, op_index: int, entry: Any) -> OpCall:
    if not isinstance(entry, dict) or not isinstance(entry.get("op"), str):
        raise GraphFileError(f"{place}: an op is an object with a name `op`, got {entry!r}")
    name = entry["op"]
    if name == "leaf":
        return _leaf(place, entry)
    if name not in OPERATIONS:
        raise _renamed(place, UnknownNameError("op", name, [*OPERATIONS, "leaf"]))
    inputs = entry.get("in")
    if not isinstance(inputs, list) or not all(_is_index(i) for i in inputs):
        raise GraphFileError(f"{place}: `{name}` needs `in`, a list of op indices, got {inputs!r}")
    for i in inputs:
        if i >= op_index:
            raise GraphFileError(
                f"{place}: `{name}` refers to op {i}, which comes later or is itself",
                "an op may use only ops before it",
            )
    _check_arguments(place, name, inputs, entry)
    arguments = {key: value for key, value in entry.items() if key not in ("op", "in")}
    return OpCall(name, tuple(inputs), arguments)


def _check_arguments(place: str, name: str, inputs: list[int], entry: dict[str, Any]) -> None:
    signature = signature_of(name)
    if not signature.takes(len(inputs)):
        raise GraphFileError(
            f"{place}: `{name}` takes {signature.inputs_text} inputs, got {len(inputs)}"
        )
    for key in signature.arguments:
        if key not in entry and key not in signature.optional:
            raise GraphFileError(f"{place}: `{name}` needs `{key}`")
    for key in entry:
        if key not in ("op", "in", *signature.arguments):
            raise GraphFileError(f"{place}: `{name}` has no `{key}`")


def _leaf(place: str, entry: dict[str, Any]) -> OpCall:
    unknown = set(entry) - _LEAF_KEYS
    if unknown:
        raise GraphFileError(f"{place}: `leaf` has no `{min(unknown)}`")
    requires_grad = entry.get("req", False)
    if not isinstance(requires_grad, bool):
        raise GraphFileError(f"{place}: `req` must be true or false, got {requires_grad!r}")
    try:
        data = np.asarray(entry.get("data"), dtype=np.float64)
    except (TypeError, ValueError):
        data = np.array(np.nan)
    if data.ndim == 0 or data.size == 0:
        raise GraphFileError(f"{place}: a leaf needs `data`, a list of numbers")
    shape = entry.get("shape")
    if shape is None and data.ndim == 1:
        side = math.isqrt(data.size)
        shape = [side, side] if side * side == data.size else [data.size]
    if shape is not None:
        data = _shaped(place, data, shape)
    return OpCall("leaf", (), {}, data, requires_grad)


def _shaped(place: str, data: Any, shape: Any) -> Any:
    if not isinstance(shape, list) or not shape or not all(_is_index(size) for size in shape):
        raise GraphFileError(f"{place}: `shape` must be a list of sizes, got {shape!r}")
    if math.prod(shape) != data.size:
        raise GraphFileError(f"{place}: {data.size} numbers do not fill shape {shape}")
    return data.reshape(shape)


def _is_index(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _renamed(place: str, error: UsageError) -> GraphFileError:
    return GraphFileError(f"{place}: {error.message}", error.hint)
