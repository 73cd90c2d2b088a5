"""What of a program never runs: a region, layers, the backward step of anything made in a region.

Each is a line with the name that it is about. Nothing here is an error: an unused head, a loop that
ends early and an empty block are programs; but whoever reads a profile thinks that they were in it.
"""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Iterator

from ckptcli.events import LayersEnded, LayerStarted, RegionClosed, StepStarted, Watcher
from ckptcli.units import count


class RunFacts(Watcher):
    """A sink that keeps which regions, layers and backward steps ran."""

    def __init__(self) -> None:
        super().__init__(
            {
                RegionClosed: self._take_region,
                LayerStarted: self._take_layer,
                LayersEnded: self._take_end,
                StepStarted: self._take_step,
            }
        )
        self.outer_regions: list[RegionClosed] = []
        self._stepped = array("q")
        self.short_loops: list[tuple[int, int]] = []
        """Of loops over layers that ended early: how many ran, of how many."""
        self._loops: list[tuple[int, int]] = []

    def _take_region(self, event: RegionClosed) -> None:
        if event.depth == 1:
            self.outer_regions.append(event)

    def _take_layer(self, event: LayerStarted) -> None:
        if event.layer > 0:
            self._loops.pop()
        self._loops.append((event.layer + 1, event.layer_count))

    def _take_end(self, event: LayersEnded) -> None:
        del event
        ran, asked = self._loops.pop()
        if ran < asked:
            self.short_loops.append((ran, asked))

    def _take_step(self, event: StepStarted) -> None:
        self._stepped.append(event.node_id)

    def lints(self) -> Iterator[str]:
        """The lints of one pass; none on regions where no step ran, which is told elsewhere."""
        for (ran, asked), times in Counter(self.short_loops).items():
            loops = "a loop" if times == 1 else f"{times} loops"
            yield f"{loops} over {count(asked, 'layer')} ended after {ran}: the others never ran"
        if not self._stepped or not self.outer_regions:
            return
        empty = Counter(region.name for region in self.outer_regions if not region.nodes)
        for name, times in empty.items():
            yield f"region `{name}` is empty{_times(times)}: no op ran inside, put ops into it"
        stepped = set(self._stepped)
        idle = Counter(
            region.name
            for region in self.outer_regions
            if region.nodes and stepped.isdisjoint(region.nodes)
        )
        for name, times in idle.items():
            yield (
                f"region `{name}` never runs in backward{_times(times)}: no gradient flows through "
                "what is made in it, take it out or use its result in the loss"
            )


def _times(number: int) -> str:
    return "" if number == 1 else f", {number} times"
