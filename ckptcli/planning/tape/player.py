"""Plays a schedule of the tape on a cost graph: how many bytes are live, and when most are.

The planners' own count. It knows what the engine does with a schedule: who holds a value in the
forward pass, what is dropped when the backward pass begins, and when a step lets go of what it has.

Invariant: it gives what the engine gives without arrays, to the byte.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from ckptcli.planning.tape.cost_graph import (
    ApplyOp,
    CostNode,
    DrawLeaf,
    DropHandle,
    MakeLeaf,
    Span,
    StepItem,
    TakeBytes,
)
from ckptcli.planning.tape.model import TapeModel
from ckptcli.planning.tape.schedule import Retrieval, Schedule

FORWARD = -1
"""Where the peak is, if it is in the forward pass."""


@dataclass(frozen=True, slots=True)
class PlayedBytes:
    """The bytes of a schedule, above those of parameters and input.

    Attributes:
        peak_bytes: the most at once.
        forward_bytes: the most in the forward pass.
        held_bytes: what is live at its end.
        peak_step: the step in which the most is live; `FORWARD` before all.
        host_bytes: the most that is on the host, which is at the end of the forward pass.
    """

    peak_bytes: int
    forward_bytes: int
    held_bytes: int
    peak_step: int
    host_bytes: int


class _Block:
    """One block of memory, the node that made it, and how many refer to it."""

    __slots__ = ("memory", "references", "size")

    def __init__(self, size: int, memory: int = -1) -> None:
        self.size = size
        self.memory = memory
        self.references = 1


class _Unreached:
    """A node that does not lead to the root: what it holds, and how many refer to it."""

    __slots__ = ("blocks", "references")

    def __init__(self, blocks: list[_Block]) -> None:
        self.blocks = blocks
        self.references = 1


class Player:
    """A model, to be played with one schedule after another.

    With `with_workspace` the workspace of kernels counts.
    """

    def __init__(self, model: TapeModel, with_workspace: bool) -> None:
        self.model = model
        rise: Callable[[Span], int] = _workspace_rise if with_workspace else _rise
        nodes = model.graph.nodes
        self.rise_again = [rise(node.again) for node in nodes]
        self.saved = [_saved(node) if model.can_recompute[node.id] else () for node in nodes]
        self.storage_bytes = [model.storage_bytes(node.id) for node in nodes]
        self.forward = list(_makings(model, rise))
        self.before = _items(model.graph.before, rise)
        self.steps = {step: _items(items, rise) for step, items in model.graph.steps.items()}

    def play(self, schedule: Schedule) -> PlayedBytes:
        """One pass under the schedule."""
        return _Pass(self, schedule).run()

    def forward_moments(
        self, values: Sequence[int]
    ) -> Iterator[tuple[int, int, list[tuple[int, int]]]]:
        """Of each moment of the forward pass at which the most may be live: what is live if no
        value is held, which of `values` (as bits) would be live if they were held, and the memory
        of these: the values that share a block, and its size.
        """
        forward = _Moments(self, values)
        forward.forward()
        yield from forward.moments

    def play_forward(self) -> PlayedBytes:
        """The forward half of a pass that holds no value that can be computed again: the least."""
        return _Moments(self, ()).forward()


Items = list[tuple[int, int, tuple[int, int] | None]]
"""(rise, net, None) of a stretch, (0, 0, (step, place)) of a release."""


def _rise(span: Span) -> int:
    return span.rise_bytes


def _workspace_rise(span: Span) -> int:
    return span.workspace_rise_bytes


def _items(items: Sequence[StepItem], rise: Callable[[Span], int]) -> Items:
    return [
        (rise(item), item.net_bytes, None)
        if isinstance(item, Span)
        else (0, 0, (item.step_id, item.place))
        for item in items
    ]


Making = tuple[bool, int, int, int, tuple[int, ...]]
"""Whether a value is made (or let go of), its node (-1 for none), rise, net, and what it holds."""


def _makings(model: TapeModel, rise: Callable[[Span], int]) -> Iterator[Making]:
    for action in model.graph.forward:
        if isinstance(action, DropHandle):
            yield False, action.node_id, 0, 0, ()
        elif isinstance(action, TakeBytes):
            yield True, -1, rise(action.span), action.span.net_bytes, ()
        elif isinstance(action, ApplyOp | DrawLeaf | MakeLeaf):
            holds = action.holds if isinstance(action, ApplyOp) else ()
            yield True, action.node_id, rise(action.span), action.span.net_bytes, holds


def _saved(node: CostNode) -> tuple[int, ...]:
    """The nodes that the op saves for its backward step."""
    facts = node.facts
    if facts is None:
        return ()
    saved = tuple(node.parents[position] for position in facts.keeps)
    return (*saved, node.id) if facts.reads_output else saved


class _Pass:
    """Blocks and live bytes of one pass."""

    def __init__(self, player: Player, schedule: Schedule) -> None:
        self.player = player
        self.schedule = schedule
        self.live = self.peak = 0
        self.peak_step = FORWARD
        self.step = FORWARD
        self.made: dict[int, _Block] = {}
        """Memory's node -> its block of the forward pass, while that is live."""
        self.values: dict[int, _Block] = {}
        """Node -> the block of its value, in the backward pass."""
        self.retrieved: dict[tuple[int, int], _Block] = {}
        self.beside: dict[int, list[_Block]] = {}
        """Step -> what its op holds outside the checkpointer."""
        self.let_go = (schedule.computed - schedule.held) | schedule.moved
        """The nodes whose values nobody holds in the forward pass."""
        self.unreached: dict[int, _Unreached] = {}
        """The nodes that do not lead to the root, while something refers to them."""

    def forward(self) -> PlayedBytes:
        """The forward half; only handles hold what the schedule does not."""
        held = self._forward()
        for _, block in held:
            self._release(block)
        for blocks in self.beside.values():
            for block in blocks:
                self._release(block)
        return PlayedBytes(self.peak, self.peak, self.live, FORWARD, self._host_bytes())

    def run(self) -> PlayedBytes:
        """Both halves."""
        held = self._forward()
        forward_bytes, held_bytes = self.peak, self.live
        self._play(self.player.before)
        self._begin(held)
        by_step: dict[int, list[Retrieval]] = {}
        for retrieval in self.schedule.retrievals:
            by_step.setdefault(retrieval.step, []).append(retrieval)
        for step, items in self.player.steps.items():
            self.step = step
            for place, retrieval in enumerate(by_step.get(step, ())):
                self._retrieve(retrieval, place)
            self._play(items)
            for block in self.beside.pop(step, ()):
                self._release(block)
        host_bytes = self._host_bytes()
        return PlayedBytes(self.peak, forward_bytes, held_bytes, self.peak_step, host_bytes)

    def _host_bytes(self) -> int:
        nodes = self.player.model.graph.nodes
        return sum(nodes[node].value_bytes for node in self.schedule.moved)

    def _rise(self, rise: int) -> None:
        if self.live + rise > self.peak:
            self.peak = self.live + rise
            self.peak_step = self.step

    def _release(self, block: _Block) -> None:
        block.references -= 1
        if not block.references:
            self.live -= block.size

    def _forward(self) -> list[tuple[int, _Block]]:
        """Returns what steps hold of it: node and block."""
        model, made = self.player.model, self.made
        nodes, can_recompute = model.graph.nodes, model.can_recompute
        again = self.schedule.computed
        held: list[tuple[int, _Block]] = []
        for is_made, node_id, rise, net, holds in self.player.forward:
            if not is_made:
                self._release(made.get(nodes[node_id].memory_of) or _Block(0))
                self._drop(node_id)
                continue
            self._rise(rise)
            self.live += net
            if node_id < 0:
                continue
            memory = nodes[node_id].memory_of
            if memory == node_id:
                made[memory] = _Block(self.player.storage_bytes[memory], memory)
                self.live += made[memory].size
            else:
                self._refer(made, memory)
            if not can_recompute[node_id]:
                continue
            if node_id not in self.player.steps:
                self.unreached[node_id] = self._unreached(node_id, holds)
                continue
            backed_up = nodes[node_id].parents if node_id in again else ()
            for operand in (*self.player.saved[node_id], *backed_up):
                if operand not in self.let_go:
                    held.append((operand, self._refer(made, nodes[operand].memory_of)))
            if holds:
                self.beside[node_id] = [self._refer(made, memory) for memory in holds]
        return held

    def _unreached(self, node_id: int, holds: Sequence[int]) -> _Unreached:
        """A node without a step: it holds what it saved until nothing refers to it."""
        nodes = self.player.model.graph.nodes
        saved = [operand for operand in self.player.saved[node_id] if operand not in self.let_go]
        memories = [nodes[operand].memory_of for operand in saved]
        for parent in nodes[node_id].parents:
            if parent in self.unreached:
                self.unreached[parent].references += 1
        return _Unreached([self._refer(self.made, memory) for memory in (*memories, *holds)])

    def _drop(self, node_id: int) -> None:
        """One reference less to a node without a step, and to those that it kept."""
        stack = [node_id]
        while stack:
            current = stack.pop()
            node = self.unreached.get(current)
            if node is None:
                continue
            node.references -= 1
            if not node.references:
                del self.unreached[current]
                for block in node.blocks:
                    self._release(block)
                stack.extend(self.player.model.graph.nodes[current].parents)

    @staticmethod
    def _refer(made: dict[int, _Block], memory: int) -> _Block:
        """One more reference; what was there before the pass takes nothing of it."""
        block = made.get(memory)
        if block is None:
            block = made[memory] = _Block(0)
        block.references += 1
        return block

    def _begin(self, held: list[tuple[int, _Block]]) -> None:
        """The retriever takes one reference to each value that is ever asked for."""
        wanted = set(self.schedule.held)
        wanted.update(retrieval.node for retrieval in self.schedule.retrievals)
        for node in self.schedule.computed:
            wanted.update(self.player.model.parents[node])
        for node, block in held:
            if node in wanted and node not in self.values:
                self.values[node] = block
            else:
                self._release(block)

    def _retrieve(self, retrieval: Retrieval, place: int) -> None:
        for move in retrieval.before:
            if move < 0:
                self._release(self.values.pop(~move))
            elif move in self.schedule.moved:
                self._bring_back(move)
            else:
                self._compute(move)
        block = self.values[retrieval.node]
        block.references += 1
        self.retrieved[retrieval.step, place] = block
        for node in retrieval.after:
            self._release(self.values.pop(node))

    def _bring_back(self, node_id: int) -> None:
        size = self.player.model.graph.nodes[node_id].value_bytes
        self._rise(size)
        self.values[node_id] = _Block(size)
        self.live += size

    def _compute(self, node_id: int) -> None:
        self._rise(self.player.rise_again[node_id])
        nodes = self.player.model.graph.nodes
        memory = nodes[node_id].memory_of
        if memory == node_id:
            self.values[node_id] = block = _Block(self.player.storage_bytes[memory])
            self.live += block.size
            return
        for parent in nodes[node_id].parents:
            if nodes[parent].memory_of == memory:
                self.values[node_id] = block = self.values[parent]
                block.references += 1
                return
        self.values[node_id] = _Block(0)

    def _play(self, items: Items) -> None:
        for rise, net, place in items:
            if place is None:
                self._rise(rise)
                self.live += net
            else:
                self._release(self.retrieved.pop(place))


class _Moments(_Pass):
    """A forward pass that holds no value that can be computed again, and nothing to compute it of:
    no schedule takes less. What was let go of is noted.

    Attributes:
        moments: of each op live bytes at its peak, the values let go of by then, their blocks.
    """

    def __init__(self, player: Player, values: Sequence[int]) -> None:
        super().__init__(player, Schedule(frozenset(), ()))
        self.let_go = frozenset(player.model.values)
        self.moments: list[tuple[int, int, list[tuple[int, int]]]] = []
        self._sharing: dict[int, int] = {}
        for place, value in enumerate(values):
            memory = player.model.graph.nodes[value].memory_of
            self._sharing[memory] = self._sharing.get(memory, 0) | 1 << place
        self._gone = 0
        self._blocks: list[tuple[int, int]] = []

    def _rise(self, rise: int) -> None:
        super()._rise(rise)
        self.moments.append((self.live + rise, self._gone, list(self._blocks)))

    def _release(self, block: _Block) -> None:
        super()._release(block)
        if not block.references and (mask := self._sharing.get(block.memory, 0)):
            self._gone |= mask
            self._blocks.append((mask, block.size))
