"""A cost graph as JSON, and back: planning needs neither the program nor its arrays.

Invariant: what is read back equals what was written, tuples for tuples.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from ckptcli.errors import UsageError
from ckptcli.planning.tape.cost_graph import (
    Action,
    ApplyOp,
    CloseRegion,
    CostGraph,
    CostNode,
    DrawLeaf,
    DropHandle,
    EndLayers,
    KeepOutput,
    MakeLeaf,
    NameValue,
    OpenRegion,
    OpFacts,
    Release,
    Span,
    StartLayer,
    StepItem,
    TakeBytes,
    TrackLeaf,
)

KIND = "program"
SCHEMA = "ckpt.cost-graph/1"

ENTRIES = (
    "schema",
    "title",
    "nodes",
    "layers",
    "loops",
    "parameters",
    "root",
    "consumes",
    "base_bytes",
    "load",
    "forward",
    "before",
    "steps",
    "step_times_s",
    "backend",
    "sees_workspace",
)

_ACTIONS: dict[str, Callable[..., Action]] = {
    "leaf": MakeLeaf,
    "track": TrackLeaf,
    "draw": DrawLeaf,
    "op": ApplyOp,
    "name": NameValue,
    "own_output": KeepOutput,
    "drop": DropHandle,
    "open": OpenRegion,
    "close": CloseRegion,
    "layer": StartLayer,
    "end_layers": EndLayers,
    "bytes": TakeBytes,
}
_WORDS = {kind: word for word, kind in _ACTIONS.items()}


def graph_to_json(graph: CostGraph, policy_text: Callable[[Any], str | None]) -> dict[str, Any]:
    """The graph as what JSON can hold; `policy_text` says how a region's policy is written, None
    for one that cannot be.
    """

    def action(act: Action) -> list[Any]:
        if isinstance(act, OpenRegion):
            return [_WORDS[OpenRegion], act.name, policy_text(act.policy)]
        return [_WORDS[type(act)], *act]

    return {
        "schema": SCHEMA,
        "kind": KIND,
        "title": graph.title,
        "nodes": [asdict(node) for node in graph.nodes],
        "layers": [None if place is None else list(place) for place in graph.layers],
        "loops": graph.loops,
        "parameters": graph.parameters,
        "root": graph.root,
        "consumes": graph.consumes,
        "base_bytes": graph.base_bytes,
        "load": [action(act) for act in graph.load],
        "forward": [action(act) for act in graph.forward],
        "before": [_item(item) for item in graph.before],
        "steps": [[step, [_item(i) for i in items]] for step, items in graph.steps.items()],
        "step_times_s": [list(entry) for entry in graph.step_times_s.items()],
        "backend": graph.backend,
        "sees_workspace": graph.sees_workspace,
    }


def graph_from_json(data: Mapping[str, Any], policy_of: Callable[[str | None], Any]) -> CostGraph:
    """The graph that `graph_to_json` wrote; `policy_of` reads a region's policy.

    Raises:
        UsageError: it is not such a graph.
    """

    def action(entry: Sequence[Any]) -> Action:
        word, *fields = entry
        if word == _WORDS[OpenRegion]:
            return OpenRegion(fields[0], policy_of(fields[1]))
        return _ACTIONS[word](*_tuples(fields, _ACTIONS[word]))

    try:
        return CostGraph(
            title=data["title"],
            nodes=tuple(_node(entry) for entry in data["nodes"]),
            layers=tuple(None if place is None else tuple(place) for place in data["layers"]),
            loops=tuple(data["loops"]),
            parameters=dict(data["parameters"]),
            root=data["root"],
            consumes=data["consumes"],
            base_bytes=data["base_bytes"],
            load=tuple(map(action, data["load"])),
            forward=tuple(map(action, data["forward"])),
            before=tuple(map(_item_of, data["before"])),
            steps={step: tuple(map(_item_of, items)) for step, items in data["steps"]},
            step_times_s=dict(data["step_times_s"]),
            backend=data["backend"],
            sees_workspace=data["sees_workspace"],
        )
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise UsageError(
            f"this is no cost graph of a program: {type(error).__name__} at {error}",
            "write one with `ckpt plan --export-graph FILE`",
        ) from error


def _item(item: StepItem) -> list[int]:
    """A stretch has three figures, a release two."""
    return list(item)


def _item_of(entry: Sequence[int]) -> StepItem:
    return Span(*entry) if len(entry) == len(Span._fields) else Release(*entry)


def _tuples(fields: Sequence[Any], kind: Callable[..., Action]) -> list[Any]:
    """Spans as spans, other lists as tuples."""
    names = kind._fields  # type: ignore[attr-defined]
    return [
        Span(*field) if name == "span" else tuple(field) if isinstance(field, list) else field
        for name, field in zip(names, fields)
    ]


def _node(entry: Mapping[str, Any]) -> CostNode:
    values = dict(entry)
    for name in ("parents", "shape", "needed"):
        values[name] = tuple(values[name])
    values["again"] = Span(*values["again"])
    facts = values["facts"]
    if facts is not None:
        values["facts"] = OpFacts(
            **{**facts, "keeps": tuple(facts["keeps"]), "params": _deep(facts["params"])}
        )
    return CostNode(**values)


def _deep(value: Any) -> Any:
    return tuple(map(_deep, value)) if isinstance(value, list) else value
