"""The traced tensor: a handle on a node, with its history and its tracer.

A handle's node never changes but in `checkpoint`; a `clone()` taken before keeps the old graph. The
methods are the functions of `ckptcli.traced.ops`, attached by `traced_op`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from ckptcli.errors import DeviceError, DtypeError, ShapeError
from ckptcli.traced.history import Count
from ckptcli.traced.node import Leaf, Node
from ckptcli.traced.op import Op

if TYPE_CHECKING:
    from ckptcli.traced.program import Compiler
    from ckptcli.traced.tracer import Tracer

Function = TypeVar("Function", bound=Callable[..., Any])


class Tensor:
    """A value that is computed when it is asked for, rank 1 or more; a scalar has shape (1,).

    Attributes:
        node: what it stands for.
        history: what its tracer's merge rule keeps of earlier checkpoints; None if nothing.
        tracer: where it was made.

    Create tensors with a `Tracer`.
    """

    __slots__ = ("history", "node", "tracer")

    __array_priority__ = 1000.0

    def __init__(self, node: Node, history: Any, tracer: Tracer) -> None:
        self.node = node
        self.history = history
        self.tracer = tracer

    @property
    def shape(self) -> tuple[int, ...]:
        """The size of each dimension."""
        return self.node.shape

    @property
    def dtype(self) -> str:
        """The name of the element type, `float64`."""
        return self.node.dtype

    @property
    def data(self) -> Any:
        """The backend's array of a leaf with data; None for any other tensor."""
        return self.node.data if isinstance(self.node, Leaf) else None

    def clone(self) -> Tensor:
        """Another handle on the same value."""
        return Tensor(self.node, self.history, self.tracer)

    def evaluate(
        self, bindings: Sequence[tuple[Tensor, Any]] = (), compiler: Compiler | None = None
    ) -> Any:
        """The value as a read-only NumPy array; `bindings` pairs placeholders with their data.

        Raises:
            BindingError: a placeholder without data or bound twice, or a binding of another tensor.
            ShapeError: data in another shape than its placeholder's.
        """
        array = self._computed(compiler, bindings)
        return self.tracer.backend.to_numpy(array)

    def checkpoint(self, compiler: Compiler | None = None) -> None:
        """Evaluate now and go on from a leaf with the value; the old graph stays for the gradient.

        An error leaves the tensor as it was.

        Raises:
            BindingError: the graph has a placeholder.
            HistoryTooLongError: under a merge rule that copies.
        """
        tracer = self.tracer
        data = self.data
        if data is not None and not tracer.rule.enters_data:
            return
        if data is None:
            data = self._computed(compiler, ())
        leaf = Leaf(tracer.peek_key(), data, self.node.shape, self.node.dtype)
        history = tracer.rule.checkpointed(self.history, self.node, leaf)
        tracer.next_key()
        self.node, self.history = leaf, history

    def checkpoints(self) -> Count:
        """The entries of its history, counted by a walk."""
        return self.tracer.rule.count(self.history, self.node)

    def _computed(self, compiler: Compiler | None, bindings: Sequence[tuple[Tensor, Any]]) -> Any:
        program = (compiler or self.tracer.compiler).compile([self])
        return program.run(bindings)[0]

    def __repr__(self) -> str:
        kind = self.node.label if isinstance(self.node, Leaf) else operation_of(self.node).name
        return f"traced.Tensor({kind}, shape={list(self.shape)}, dtype={self.dtype})"

    __hash__ = object.__hash__

    if TYPE_CHECKING:  # The ops attach these; see `ckptcli.traced.ops`.

        def __getattr__(self, name: str) -> Callable[..., Tensor]: ...
        def __add__(self, other: Tensor | float) -> Tensor: ...
        def __radd__(self, other: float) -> Tensor: ...
        def __sub__(self, other: Tensor | float) -> Tensor: ...
        def __rsub__(self, other: float) -> Tensor: ...
        def __mul__(self, other: Tensor | float) -> Tensor: ...
        def __rmul__(self, other: float) -> Tensor: ...
        def __truediv__(self, other: Tensor | float) -> Tensor: ...
        def __rtruediv__(self, other: float) -> Tensor: ...
        def __neg__(self) -> Tensor: ...
        def __matmul__(self, other: Tensor) -> Tensor: ...
        def __getitem__(self, slices: slice | tuple[slice, ...]) -> Tensor: ...


def operation_of(node: Node) -> Op:
    """The op of a node that is no leaf."""
    assert node.op is not None
    return node.op


def apply(op: Op, operands: Sequence[Tensor], params: tuple[Any, ...] = ()) -> Tensor:
    """The op as a new node; nothing is computed.

    Raises:
        ShapeError: operands whose shapes do not fit.
        DtypeError: operands of different dtypes.
        DeviceError: operands of different tracers.
    """
    nodes = tuple([operand.node for operand in operands])
    first = operands[0]
    tracer, dtype = first.tracer, first.node.dtype
    for operand in operands[1:]:
        if operand.tracer is not tracer:
            raise DeviceError(f"`{op.name}`: operands of two tracers", "make both with one Tracer")
        if operand.node.dtype != dtype:
            raise DtypeError(
                f"`{op.name}`: operands of dtype {dtype} and {operand.node.dtype}",
                "make the inputs with one dtype",
            )
    try:
        shape = op.shape(*[node.shape for node in nodes], *params)
    except (ValueError, LookupError) as error:
        shapes = " and ".join(str(list(node.shape)) for node in nodes)
        raise ShapeError(f"`{op.name}` cannot take operands of shape {shapes}: {error}") from error
    history = tracer.rule.merged([operand.history for operand in operands])
    return Tensor(Node(op, nodes, params, shape, dtype), history, tracer)


def traced_op(*names: str) -> Callable[[Function], Function]:
    """Decorator: makes a function of tensors a method of `Tensor`, under these names too."""

    def attach(function: Function) -> Function:
        for name in (function.__name__, *names):
            setattr(Tensor, name, function)
        return function

    return attach
