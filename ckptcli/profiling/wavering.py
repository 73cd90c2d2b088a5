"""Whether policies of the user's own answer alike when a program is run again.

A profile runs a program many times and takes one pass's account for all of them. A policy that goes
by what it was asked before saves other values in each: the account is then that of no timed pass.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ckptcli.backends.base import Backend
from ckptcli.checkpoint.strategies.base import Strategy
from ckptcli.events import RegionClosed, Watcher
from ckptcli.passes.run import open_pass
from ckptcli.units import count
from ckptcli.workloads.base import Workload


class _Regions(Watcher):
    """A sink that keeps the regions."""

    def __init__(self) -> None:
        self.closed: list[RegionClosed] = []
        super().__init__({RegionClosed: self.closed.append})


def wavering_lints(
    workload: Workload, strategy: Strategy, backend: Backend, regions: Sequence[RegionClosed]
) -> Iterator[str]:
    """A line for the first region whose policy saves something else in one more forward pass.

    `regions` are those of a pass before; without a function of the user's own nothing is run.
    """
    if not any(region.has_own_policy for region in regions):
        return
    again = _Regions()
    open_pass(workload, strategy, backend, again).forward()
    for before, after in zip(regions, again.closed):
        if before.has_own_policy and before.saved != after.saved:
            yield (
                f"the policy of region `{before.name}` allowed {count(len(before.saved), 'value')} "
                f"({_nodes(before)}) in one pass and {len(after.saved)} ({_nodes(after)}) in the "
                "next: each pass holds something else; let it go by what it is told of a value"
            )
            return


def _nodes(region: RegionClosed, most: int = 5) -> str:
    shown = ", ".join(map(str, region.saved[:most]))
    more = "" if len(region.saved) <= most else ", ..."
    return f"nodes {shown}{more}" if shown else "none"
