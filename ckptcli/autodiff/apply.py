"""Applying an op: compute the value, make the node, save what the backward pass will need.

This is the hot path of the forward pass, once for each node, so it is written out for one and for
two operands and sets slots itself: no comprehension over operands, no constructor call
(`benchmarks/engine.py`).

Invariant: the value is computed first, the id is taken next, and nothing is registered when the
computation fails.

Source: Burn 0.22.1, `burn-autodiff/src/ops/base.rs` (the type-state chain `prepare`, `finish`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NoReturn

from ckptcli.autodiff.device import Device, common_device
from ckptcli.autodiff.op import BOTH, Op, Positions
from ckptcli.autodiff.tensor import Tensor, created, wrap
from ckptcli.errors import DtypeError, EngineError, OperandError, ShapeError
from ckptcli.graph import BACKED_UP, ON_HOST, Answer, Node, value_of


def unary(op: Op, x: Tensor, params: Any = None) -> Tensor:
    """The output of an op with one operand.

    Raises:
        ShapeError: the operand does not fit the op.
    """
    device = x.device
    x_value = x.value
    x_node = x.node
    try:
        value = op.forward(device.namespace, x_value, params)
    except device.backend.operand_errors as error:
        _raise_shape_error(op, (x,), params, error)
    node = Node()
    node.id = device.next_id()
    node.order = x_node.order + 1
    node.op = op
    node.params = params
    node.region = device.region
    node.owner = None
    if x_node.tracked:
        node.tracked = node.mask = 1
        parents = node.parents = (x_node,)
        node.state = (
            None if op.state is None else op.state(device.namespace, value, x_value, params)
        )
        held = None if x_node.recompute else x_value
        answer = device.recomputes(node)
        node.backup_values = (held,) if answer else ()
        node.recompute = answer if type(answer) is bool else _otherwise(node, answer, value, device)
        if op.keeps[1]:
            node.saved = parents
            node.saved_values = (held,)
        else:
            node.saved = node.saved_values = ()
    else:
        _untracked(node, device, (x,))
    output = Tensor()
    output.value = value
    output.node = node
    output.device = device
    if device.sink is not None:
        device.sink.emit(created(output, (x_node,), (x_value,)))
    return output


def binary(op: Op, lhs: Tensor, rhs: Tensor, params: Any = None) -> Tensor:
    """The output of an op with two operands.

    Raises:
        ShapeError, DtypeError: the operands do not fit each other.
        DeviceError: the operands live on different devices or under different strategies.
    """
    device = lhs.device
    if type(rhs) is not Tensor or rhs.device is not device:
        device = _common_device(op, lhs, rhs)
    lhs_value = lhs.value
    rhs_value = rhs.value
    lhs_node = lhs.node
    rhs_node = rhs.node
    if lhs_value.dtype is not rhs_value.dtype:
        _check_dtypes(op, (lhs, rhs))
    try:
        value = op.forward(device.namespace, lhs_value, rhs_value, params)
    except device.backend.operand_errors as error:
        _raise_shape_error(op, (lhs, rhs), params, error)
    node = Node()
    node.id = device.next_id()
    order = lhs_node.order
    node.order = (order if order > rhs_node.order else rhs_node.order) + 1
    node.op = op
    node.params = params
    node.region = device.region
    node.owner = None
    mask = lhs_node.tracked | rhs_node.tracked << 1
    if mask:
        node.tracked = 1
        node.mask = mask
        parents = node.parents = (lhs_node, rhs_node)
        is_broadcast = op.broadcasts and lhs_value.shape != rhs_value.shape
        node.state = (lhs_value.shape, rhs_value.shape) if is_broadcast else None
        held = (
            None if lhs_node.recompute else lhs_value,
            None if rhs_node.recompute else rhs_value,
        )
        answer = device.recomputes(node)
        node.backup_values = held if answer else ()
        node.recompute = answer if type(answer) is bool else _otherwise(node, answer, value, device)
        kept = op.keeps[mask]
        if kept is BOTH:
            node.saved = parents
            node.saved_values = held
        elif kept:
            _save_some(node, kept, held)
        else:
            node.saved = node.saved_values = ()
    else:
        _untracked(node, device, (lhs, rhs))
    output = Tensor()
    output.value = value
    output.node = node
    output.device = device
    if device.sink is not None:
        device.sink.emit(created(output, (lhs_node, rhs_node), (lhs_value, rhs_value)))
    return output


def _save_some(node: Node, kept: Positions, held: tuple[Any, ...]) -> None:
    """Checkpoint the operands at these positions, in this order."""
    parents = node.parents
    if len(kept) == 1:
        (position,) = kept
        node.saved = (parents[position],)
        node.saved_values = (held[position],)
    else:
        node.saved = tuple([parents[position] for position in kept])
        node.saved_values = tuple([held[position] for position in kept])


def many(op: Op, operands: Sequence[Tensor], params: Any = None) -> Tensor:
    """The output of an op with any number of operands, or of one that needs what is rare.

    A loop where `binary` is written out: for three operands (a bias), and for two with a state.

    Raises:
        ShapeError: the operands do not fit each other.
        DtypeError: the operands have different dtypes.
        DeviceError: the operands live on different devices or under different strategies.
    """
    first = operands[0]
    device = first.device
    for other in operands[1:]:
        if getattr(other, "device", None) is not device:
            common = _common_device(op, first, other)
            device = device if common.region is None else common
    _check_dtypes(op, operands)
    values = [operand.value for operand in operands]
    nodes = tuple(operand.node for operand in operands)
    try:
        value = op.forward(device.namespace, *values, params)
    except device.backend.operand_errors as error:
        _raise_shape_error(op, operands, params, error)
    node = Node()
    node.id = device.next_id()
    node.order = 1 + max(parent.order for parent in nodes)
    node.op = op
    node.params = params
    node.region = device.region
    node.owner = None
    node.mask = sum(parent.tracked << position for position, parent in enumerate(nodes))
    if node.mask:
        node.tracked = 1
        node.parents = nodes
        node.state = (
            None if op.state is None else op.state(device.namespace, value, *values, params)
        )
        held = tuple(None if operand.node.recompute else operand.value for operand in operands)
        answer = device.recomputes(node)
        node.backup_values = held if answer else ()
        node.recompute = answer if type(answer) is bool else _otherwise(node, answer, value, device)
        _save_some(node, op.kept(node.mask, len(nodes)), held)
    else:
        _untracked(node, device, operands)
    output = wrap(value, node, device)
    if device.sink is not None:
        device.sink.emit(created(output, nodes, values))
    return output


def with_own_output(output: Tensor) -> Tensor:
    """`output`, just made by an op without `keeps`: its backward step retrieves its own value.

    Call it after the value got its names, which decide whether it is held.
    """
    node = output.node
    if node.tracked:
        node.saved = (value_of(node),)
        node.saved_values = (None if node.recompute else output.value,)
    return output


def _otherwise(node: Node, answer: Answer, value: Any, device: Device) -> bool:
    """Whether nobody on the device holds the value of a node that is not just held, and not just
    computed again.
    """
    if answer is ON_HOST:
        node.backup_values = (device.namespace.to_host(value),)
    return bool(answer) and answer is not BACKED_UP


def _untracked(node: Node, device: Device, operands: Sequence[Tensor]) -> None:
    """A constant: nothing is saved, and whatever checkpoints it holds it by value.

    Inside a region a constant is recomputed like everything else, from operands that are backed up.
    """
    node.tracked = node.mask = 0
    node.recompute = False
    node.parents = node.saved = node.saved_values = node.backup_values = ()
    node.state = None
    if device.region is not None:
        node.parents = tuple(operand.node for operand in operands)
        node.backup_values = tuple(
            None if operand.node.recompute else operand.value for operand in operands
        )
        node.recompute = device.region.recomputes(node)
    if not device.is_autodiff:
        node.order = 0


def _common_device(op: Op, lhs: Tensor, rhs: Any) -> Device:
    if not isinstance(rhs, Tensor):
        raise OperandError(
            f"`{op.name}` takes tensors, got {type(rhs).__name__}",
            "create one with `device.tensor(...)`, or use the op with a scalar",
        )
    return common_device(lhs, rhs)


def _check_dtypes(op: Op, operands: Sequence[Tensor]) -> None:
    dtypes = [operand.dtype for operand in operands]
    if len(set(dtypes)) > 1:
        raise DtypeError(
            f"`{op.name}` got operands of different dtypes: {', '.join(dtypes)}",
            "create both with the same dtype",
        )


def _raise_shape_error(
    op: Op, operands: Sequence[Tensor], params: Any, error: Exception
) -> NoReturn:
    if isinstance(error, EngineError) or operands[0].device.backend.is_out_of_memory(error):
        raise error
    shapes = " and ".join(str(list(operand.shape)) for operand in operands)
    numbers = params if isinstance(params, tuple) else (params,)
    is_short = all(isinstance(number, int | float) for number in numbers)
    arguments = f" with {params!r}" if is_short else ""
    raise ShapeError(
        f"`{op.name}` cannot take shape {shapes}{arguments}: {str(error).strip()}"
    ) from error
