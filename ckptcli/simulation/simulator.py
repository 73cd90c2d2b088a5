"""What a strategy will take on a recorded program: the engine itself, over arrays without elements.

Invariant: the predicted bytes are those of the ledger, at the end of each half and at each peak.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ckptcli.autodiff.device import Device
from ckptcli.checkpoint.program_graph import LayerPlace, ProgramGraph, ProgramNode
from ckptcli.checkpoint.strategies.base import Strategy
from ckptcli.checkpoint.strategies.registry import parse_strategy
from ckptcli.errors import UsageError
from ckptcli.events import Sink
from ckptcli.planning.tape.choice import Named
from ckptcli.planning.tape.cost_graph import ApplyOp, CostGraph, DrawLeaf, OpenRegion, Span
from ckptcli.simulation.script import ScriptNetwork
from ckptcli.simulation.symbolic import SymbolicBackend, SymbolicNamespace, twin


@dataclass(frozen=True, slots=True)
class Prediction:
    """The bytes of one pass, parameters and input included.

    Attributes:
        forward_peak_bytes, backward_peak_bytes: the ledger's peaks of the two halves.
        forward_traced_bytes, backward_traced_bytes: the same with the workspace of kernels.
        after_forward_bytes, after_backward_bytes: what is live at their ends.
        again: node id -> how often it is computed again.
        host_peak_bytes: the most that is on the host.
    """

    forward_peak_bytes: int
    forward_traced_bytes: int
    after_forward_bytes: int
    backward_peak_bytes: int
    backward_traced_bytes: int
    after_backward_bytes: int
    again: Mapping[int, int]
    host_peak_bytes: int

    @property
    def peak_bytes(self) -> int:
        """The ledger's peak."""
        return max(self.forward_peak_bytes, self.backward_peak_bytes)

    @property
    def traced_bytes(self) -> int:
        """What must be free: the peak with workspace."""
        return max(self.forward_traced_bytes, self.backward_traced_bytes)


NAMED = (
    "none",
    "balanced",
    "sqrt",
    "sqrt:count",
    "remat",
    "remat:last=plain",
    "remat:every=2",
    "segments:2",
    "segments:3",
    "segments:4",
)
"""The strategies that a plan is held against; the first two need no layers."""


class Simulator:
    """A recorded program, to be played under any strategy; strategies are prepared for it as for
    the program itself.
    """

    def __init__(self, graph: CostGraph) -> None:
        self.graph = graph
        made = [a for a in (*graph.load, *graph.forward) if isinstance(a, ApplyOp | DrawLeaf)]
        self._spans: dict[int, Span] = {action.node_id: action.span for action in made}
        self._twins = [
            None if node.facts is None or not node.parents else twin(node) for node in graph.nodes
        ]
        self._drawn = [action.node_id for action in made if isinstance(action, DrawLeaf)]
        self._has_unknown_policy = any(
            isinstance(action, OpenRegion) and action.policy is None for action in graph.forward
        )
        self._program = program_of(graph)
        self._named: list[Named] | None = None

    def __call__(self) -> ProgramGraph:
        """The program as strategies that go by sizes see it."""
        return self._program

    def costs(self) -> CostGraph:
        """The recorded program."""
        return self.graph

    def named(self) -> Sequence[Named]:
        """What the named strategies take that mean something for the program."""
        if self._named is None:
            names = NAMED if self.graph.loops else NAMED[:2]
            self._named = [] if self._has_unknown_policy else [self._as_named(n) for n in names]
        return self._named

    def _as_named(self, name: str) -> Named:
        prediction = self.predict(parse_strategy(name))
        base = self.graph.base_bytes
        return Named(
            name,
            prediction.traced_bytes - base,
            prediction.peak_bytes - base,
            prediction.after_forward_bytes - base,
            prediction.again,
        )

    def peak_bytes(self, strategy: Strategy) -> int:
        """The peak of a strategy above parameters and input, workspace included."""
        return self.predict(strategy).traced_bytes - self.graph.base_bytes

    def predict(self, strategy: Strategy, sink: Sink | None = None) -> Prediction:
        """One pass under `strategy`, which is prepared for the program first.

        Raises:
            UsageError: the graph does not know the policies of regions that the strategy heeds.
        """
        if strategy.opens_regions and self._has_unknown_policy:
            raise UsageError(
                f"`{strategy.name}` cannot be predicted: the graph lacks the policies of the "
                "program's own regions",
                "predict it from the program itself",
            )
        xp = SymbolicNamespace(self.graph, self._spans, self._drawn)
        prepared = strategy.prepared(self)
        backend = SymbolicBackend(xp)
        device = Device(backend).autodiff().gradient_checkpointing(prepared).watched_by(sink)
        network = ScriptNetwork(self.graph, self._twins, device, xp)
        network.load()
        account = xp.account
        account.live_bytes = self.graph.base_bytes
        account.start_phase()
        prepared.pass_begins()
        result = network.forward()
        forward = account.peak_bytes, account.peak_with_workspace_bytes, account.live_bytes
        account.start_phase()
        result.root.backward()
        backward = account.peak_bytes, account.peak_with_workspace_bytes, account.live_bytes
        return Prediction(*forward, *backward, xp.again, account.host_peak_bytes)


def program_of(graph: CostGraph) -> ProgramGraph:
    """The program as strategies that go by sizes see it."""
    nodes = tuple(
        ProgramNode(
            id=node.id,
            op=node.op,
            parents=node.parents,
            shape=node.shape,
            dtype=node.dtype,
            value_bytes=node.value_bytes,
            memory_of=node.memory_of,
            tracked=node.tracked or node.id in graph.parameters.values(),
            memory_bound=node.facts is not None and node.facts.bound == "memory",
            needed=node.needed,
            layer=None if place is None else LayerPlace(*place),
            flops=node.flops,
            moved_bytes=node.moved_bytes,
            source=node.source,
        )
        for node, place in zip(graph.nodes, graph.layers)
    )
    return ProgramGraph(nodes, graph.loops, frozenset(graph.parameters.values()), graph.root)
