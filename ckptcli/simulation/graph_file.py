"""Cost graphs in files.

Policies of regions are written by name where the name says all; a program whose own regions have
other policies can be planned from the file, since plans run without regions, and not predicted
under strategies that heed them.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from ckptcli.checkpoint.policies import Policy, described, parse_policy
from ckptcli.errors import CkptError, UsageError
from ckptcli.planning.tape.cost_graph import CostGraph
from ckptcli.planning.tape.cost_graph_json import graph_from_json, graph_to_json


def written(graph: CostGraph) -> dict[str, Any]:
    """The graph as what JSON can hold."""
    return graph_to_json(graph, _policy_text)


def read(data: Any) -> CostGraph:
    """The graph that `written` gave.

    Raises:
        UsageError: it is not such a graph.
    """
    return graph_from_json(data, _policy_of)


def read_file(path: Path) -> CostGraph:
    """The graph in a file.

    Raises:
        UsageError: the file cannot be read, or holds no such graph.
    """
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise UsageError(f"`{path}` cannot be read as JSON: {error}") from error
    return read(data)


def _policy_text(policy: Policy) -> str | None:
    keyword = described(policy).keyword
    try:
        return keyword if keyword and parse_policy(keyword) == policy else None
    except CkptError:
        return None


def _policy_of(text: str | None) -> Policy | None:
    return None if text is None else parse_policy(text)
