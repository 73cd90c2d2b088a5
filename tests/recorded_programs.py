"""The graphs that Burn's own core ran: what it recorded, and the programs, read once a process."""

from __future__ import annotations

import json
from functools import cache
from typing import Any

from ckptcli.workloads.graph_case import GraphCase
from ckptcli.workloads.graph_parse import read_graph_file
from tests.helpers import DATA

CONFORMANCE = DATA / "burn_conformance.jsonl"
RECORDED: list[dict[str, Any]] = [
    json.loads(line) for line in CONFORMANCE.read_text(encoding="utf-8").splitlines()
]


@cache
def programs() -> list[GraphCase]:
    """Of each entry of `RECORDED` the program; not read before a test runs one."""
    return read_graph_file(str(CONFORMANCE))
