"""The tensor: a value, its node on the tape, and the device that it lives on.

Tensors are immutable. Their methods are the functions of the op table, attached by `method`, so
that an op's declaration is the only place that has to know the op.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from ckptcli.autodiff.source_line import program_line
from ckptcli.backends.base import Array
from ckptcli.errors import NotALeafError
from ckptcli.events import NodeCreated, shared_shape
from ckptcli.graph import CONSUMED, Node, Requirement, leaf_node

if TYPE_CHECKING:
    from ckptcli.autodiff.device import Device
    from ckptcli.autodiff.gradients import Gradients

Function = TypeVar("Function", bound=Callable[..., Any])


class Tensor:
    """An n-dimensional array on a device, rank 1 or more.

    Comparisons, `==` among them, are element-wise and give the backend's mask; the hash is that of
    the object, and whether two tensors are one is asked with `is`.

    Attributes:
        value: the backend's array.
        node: its node on the tape.
        device: the device, which carries the checkpointing strategy.

    Create tensors with `Device.tensor`, not by this class.
    """

    __slots__ = ("__weakref__", "device", "node", "value")

    value: Any
    node: Node
    device: Device

    __array_priority__ = 1000.0

    @property
    def shape(self) -> tuple[int, ...]:
        """The size of each dimension."""
        shape: tuple[int, ...] = self.value.shape
        return shape

    @property
    def dtype(self) -> str:
        """The name of the element type, `float32`."""
        name: str = self.device.namespace.dtype_name(self.value)
        return name

    @property
    def is_tracked(self) -> bool:
        """Whether a gradient flows through this tensor."""
        return bool(self.node.tracked)

    @property
    def requirement(self) -> Requirement:
        """Burn's requirement of the node."""
        return self.node.requirement

    def numpy(self) -> Any:
        """The values as a read-only `numpy.ndarray`."""
        return self.device.backend.to_numpy(self.value)

    def item(self) -> float:
        """The only element, as a Python float.

        Raises:
            ValueError: the tensor has more than one element.
        """
        return float(self.numpy().item())

    def require_grad(self) -> Tensor:
        """The same value as a leaf that keeps its gradient, under the same node id.

        Raises:
            NotALeafError: the tensor is an intermediate value of a tracked computation.
            DeviceError: the device has no autodiff.
        """
        node = self.node
        if node.tracked:
            if node.op is None:
                return self
            if node.op is CONSUMED:
                raise NotALeafError(
                    f"require_grad() on node {node.id}, which a backward pass has used up",
                    "call `detach()` first",
                )
            raise NotALeafError(
                "Can't convert a non leaf tensor into a tracked tensor: "
                f"node {node.id} is the output of `{node.op.name}`",
                "call `require_grad()` on the leaf, or `detach()` first",
            )
        self.device.check_autodiff("require_grad()")
        return self.device.tracked_leaf(self)

    def set_require_grad(self, require_grad: bool) -> Tensor:
        """`require_grad()`, or a new untracked leaf with the same value."""
        if require_grad:
            return self.require_grad()
        return new_leaf(self.value, self.device, tracked=0)

    def inner(self) -> Tensor:
        """The same value on the device without autodiff."""
        return wrap(self.value, leaf_node(-1, 0), self.device.inner())

    def __repr__(self) -> str:
        return (
            f"Tensor(shape={list(self.shape)}, dtype={self.dtype}, node={self.node.id}, "
            f"requirement={self.requirement.value})"
        )

    __hash__ = object.__hash__

    if TYPE_CHECKING:  # The op table attaches these; see `ckptcli.autodiff.ops`.

        def __getattr__(self, name: str) -> Callable[..., Tensor]: ...
        def backward(self, consume: Callable[[int, Tensor], None] | None = None) -> Gradients: ...
        def __add__(self, other: Tensor | float) -> Tensor: ...
        def __radd__(self, other: float) -> Tensor: ...
        def __sub__(self, other: Tensor | float) -> Tensor: ...
        def __rsub__(self, other: float) -> Tensor: ...
        def __mul__(self, other: Tensor | float) -> Tensor: ...
        def __rmul__(self, other: float) -> Tensor: ...
        def __truediv__(self, other: Tensor | float) -> Tensor: ...
        def __rtruediv__(self, other: float) -> Tensor: ...
        def __neg__(self) -> Tensor: ...
        def __mod__(self, other: Tensor | float) -> Tensor: ...
        def __pow__(self, exponent: Tensor | float) -> Tensor: ...
        def __matmul__(self, other: Tensor) -> Tensor: ...
        def __getitem__(self, slices: slice | Sequence[slice]) -> Tensor: ...
        def __eq__(self, other: object) -> Array: ...  # type: ignore[override]
        def __ne__(self, other: object) -> Array: ...  # type: ignore[override]
        def __gt__(self, other: Tensor | float) -> Array: ...
        def __lt__(self, other: Tensor | float) -> Array: ...
        def __ge__(self, other: Tensor | float) -> Array: ...
        def __le__(self, other: Tensor | float) -> Array: ...


def wrap(value: Any, node: Node, device: Device) -> Tensor:
    """A tensor of its parts."""
    tensor = Tensor()
    tensor.value = value
    tensor.node = node
    tensor.device = device
    return tensor


def new_leaf(value: Any, device: Device, tracked: int) -> Tensor:
    """A leaf with a new node id; on a device without autodiff no id is taken."""
    tensor = wrap(value, leaf_node(device.next_id(), tracked), device)
    if device.sink is not None:
        device.sink.emit(created(tensor, (), ()))
    return tensor


def created(tensor: Tensor, parents: Sequence[Node], operands: Sequence[Any]) -> NodeCreated:
    """The event that says how `tensor` came to be, from nodes and values of its operands.

    Whoever follows handles is told of the tensor first. By position, and without a loop where
    there is nothing to do: once an op of a watched pass.
    """
    node, value = tensor.node, tensor.value
    op: Any = node.op
    if tensor.device.handles is not None:
        tensor.device.handles(tensor)
    namespace = tensor.device.namespace
    nbytes = namespace.nbytes
    shape = shared_shape(tuple(value.shape))
    value_bytes = nbytes(value)
    name, flops, moved_bytes, memory_bound, free_signs = None, 0, 0, False, 0
    if op is not None:
        name, memory_bound = op.name, op.memory_bound
        flops = op.flops([operand.shape for operand in operands], shape)
        if not op.is_view:
            moved_bytes = value_bytes + sum(map(nbytes, operands))
        if op.free_signs is not None:
            free_signs = op.free_signs(node.params)
    return NodeCreated(
        node.id,
        name,
        tuple([parent.id for parent in parents]),
        shape,
        namespace.dtype_name(value),
        value_bytes,
        flops,
        moved_bytes,
        namespace.storage_id(value),
        bool(node.tracked),
        memory_bound,
        node.recompute,
        tuple([parent.id for parent in parents if not parent.tracked]),
        program_line(),
        free_signs,
    )


def method(*names: str) -> Callable[[Function], Function]:
    """Decorator: makes a function of the op table a method of `Tensor`, under these names too."""

    def attach(function: Function) -> Function:
        for name in (function.__name__, *names):
            setattr(Tensor, name, function)
        return function

    return attach
