"""What one pass of a program does with memory, as data: enough to play it again without arrays.

Values are what a strategy decides about: each op's output, each leaf. Everything else that a pass
allocates (temporaries of kernels, masks, indices, gradients) is the same under every strategy, and
is written down as bytes: how far a stretch of the pass rises, and what it leaves.

Invariant: playing `load`, `forward`, `before` and `steps` in order, with values let go of when
their last user is gone, gives the ledger's bytes at every moment of the recorded program.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias


class Span(NamedTuple):
    """A stretch of a pass between two things that depend on the strategy.

    Attributes:
        rise_bytes: how far live bytes rise above those at its beginning.
        workspace_rise_bytes: the same with the workspace of kernels.
        net_bytes: by how much live bytes are more at its end, the value that it makes left out.
    """

    rise_bytes: int
    workspace_rise_bytes: int
    net_bytes: int


NO_SPAN = Span(0, 0, 0)


class MakeLeaf(NamedTuple):
    """A tensor of data, or of another node's memory (`of`), as `detach` makes it."""

    node_id: int
    of: int | None
    span: Span


class TrackLeaf(NamedTuple):
    """`require_grad()` on a leaf."""

    node_id: int


class DrawLeaf(NamedTuple):
    """A random tensor."""

    node_id: int
    distribution: str
    first: float
    second: float
    span: Span


class ApplyOp(NamedTuple):
    """An op is applied to tensors that the program has in hand.

    `holds` are nodes whose memory the op keeps outside the checkpointer, until its step has run.
    """

    node_id: int
    span: Span
    holds: tuple[int, ...]


class NameValue(NamedTuple):
    """A value gets a name."""

    node_id: int
    name: str


class KeepOutput(NamedTuple):
    """The op's backward step is to retrieve the op's own output."""

    node_id: int


class DropHandle(NamedTuple):
    """The program lets go of its last tensor of a node."""

    node_id: int


class OpenRegion(NamedTuple):
    """A region of the program's own begins, under a policy."""

    name: str
    policy: Any


class CloseRegion(NamedTuple):
    """It ends."""


class StartLayer(NamedTuple):
    """A loop over layers begins one of `layer_count`."""

    layer: int
    layer_count: int


class EndLayers(NamedTuple):
    """The loop that was entered last is left."""


class TakeBytes(NamedTuple):
    """Bytes that are nobody's value."""

    span: Span


class Release(NamedTuple):
    """A backward step lets go of the value that it retrieved as number `place`, from 0."""

    step_id: int
    place: int


Action: TypeAlias = (
    MakeLeaf
    | TrackLeaf
    | DrawLeaf
    | ApplyOp
    | NameValue
    | KeepOutput
    | DropHandle
    | OpenRegion
    | CloseRegion
    | StartLayer
    | EndLayers
    | TakeBytes
)
"""What the program does in its forward pass, in order."""

StepItem: TypeAlias = Span | Release
"""What a backward step does once it has retrieved its values, in order."""


@dataclass(frozen=True, slots=True)
class OpFacts:
    """What the engine and strategies ask of an op.

    Attributes:
        bound: Burn's mark, `memory`, `compute` or `ambiguous`.
        arity: number of operands; 0 for any number.
        keeps: the positions of the operands that its step retrieves, in order.
        params: its static arguments where they are numbers, names or shapes; None for arrays.
        batch_dims: leading dims over which a product is repeated.
        evaluates_again: whether its backward evaluates the op's own function.
        reads_output: whether its step retrieves its own output.
    """

    bound: str
    arity: int
    keeps: tuple[int, ...]
    params: Any
    batch_dims: int
    evaluates_again: bool
    reads_output: bool


@dataclass(frozen=True, slots=True)
class CostNode:
    """One value of the program.

    Attributes:
        id: the node's number; nodes are numbered from 0 in the order in which they are made.
        op: the op that makes it; None for a leaf and a random tensor.
        parents: ids of the operands, in operand order.
        shape, dtype: of the value.
        value_bytes: of the value.
        storage_bytes: of the memory that it brings; 0 where it lies in another's.
        memory_of: the node that made the memory which it lies in.
        tracked: whether a gradient flows to it.
        needed: ids of the values that its backward step retrieves, in order; () without a step.
        again: what computing it again takes beside the value itself.
        flops, moved_bytes: of one evaluation.
        time_s: of one evaluation, or of making a leaf, seconds; 0 where it was not timed.
        free_signs: columns of a decomposition whose sign is free.
        source: the line of the program, `FILE:LINE`.
        facts: of its op; None for a leaf.
    """

    id: int
    op: str | None
    parents: tuple[int, ...]
    shape: tuple[int, ...]
    dtype: str
    value_bytes: int
    storage_bytes: int
    memory_of: int
    tracked: bool
    needed: tuple[int, ...]
    again: Span
    flops: int
    moved_bytes: int
    time_s: float
    free_signs: int
    source: str
    facts: OpFacts | None


@dataclass(frozen=True, slots=True)
class CostGraph:
    """A recorded program.

    Attributes:
        title: of the workload.
        nodes: every value, by its number.
        layers: of each node the loop over layers and the layer in which it is made, or None.
        loops: of each loop over layers how many layers it has.
        parameters: name -> id of the leaves whose gradients are asked for.
        root: the node that the backward pass starts from.
        consumes: whether gradients of leaves are let go of as soon as they are complete.
        base_bytes: parameters, input and all else that is live before the forward pass.
        load, forward: the actions before the forward pass, and of it.
        before: what the backward pass takes before its first step.
        steps: node id -> its backward step, in the order in which steps run.
        step_times_s: of each step its seconds, what it retrieves computed before; empty where the
            program was not timed.
        backend: the device that it was recorded on, `Numpy(Cpu)`.
        sees_workspace: whether the workspace of kernels was seen there; else spans have none.
    """

    title: str
    nodes: tuple[CostNode, ...]
    layers: tuple[tuple[int, int] | None, ...]
    loops: tuple[int, ...]
    parameters: dict[str, int]
    root: int
    consumes: bool
    base_bytes: int
    load: tuple[Action, ...]
    forward: tuple[Action, ...]
    before: tuple[StepItem, ...]
    steps: dict[int, tuple[StepItem, ...]]
    step_times_s: dict[int, float]
    backend: str
    sees_workspace: bool

    @property
    def is_timed(self) -> bool:
        """Whether it says how long things take."""
        return bool(self.step_times_s)
