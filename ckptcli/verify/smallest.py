"""The smallest part of a failing program that still fails, to send to someone.

A failure shows at the first op whose value or gradient goes wrong, so the program is cut at each op
in turn, with only what that op depends on, until a cut fails.
"""

from __future__ import annotations

from collections.abc import Callable

from ckptcli.workloads.graph_case import GraphCase


def smallest_failing(case: GraphCase, fails: Callable[[GraphCase], bool]) -> GraphCase | None:
    """The first cut of `case` for which `fails` is true; None if none does, the whole included."""
    for root, call in enumerate(case.calls):
        if call.data is None:
            cut = case.rooted_at(root)
            if fails(cut):
                return cut
    return None
