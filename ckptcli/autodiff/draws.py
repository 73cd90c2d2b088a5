"""Random tensors: a leaf, or inside a region a node without operands that is drawn again.

What is kept of a draw that is recomputed is its key (`ckptcli.backends.random_keys`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ckptcli.autodiff.op import Op
from ckptcli.autodiff.tensor import Tensor, created, new_leaf, wrap
from ckptcli.backends.random_keys import Distribution
from ckptcli.errors import ShapeError
from ckptcli.graph import Bound, leaf_node

if TYPE_CHECKING:
    from ckptcli.autodiff.device import Device


def _no_gradient(*_: Any) -> Any:
    raise AssertionError("no gradient flows to a random tensor")


RANDOM = Op(
    "random",
    Bound.COMPUTE,
    0,
    forward=lambda xp, params: xp.random(*params),
    backward=_no_gradient,
)


def random_tensor(
    device: Device, distribution: Distribution, shape: tuple[int, ...], dtype: str
) -> Tensor:
    """An untracked tensor whose node has the draw's key, shape and dtype as params.

    Raises:
        DtypeError: a dtype that a tensor cannot have.
        ShapeError: a negative size, or more elements than can be counted.
    """
    dtype = device.backend.checked_dtype(dtype)
    params = (device.keys.next(distribution), shape or (1,), dtype)
    try:
        value = device.namespace.random(*params)
    except device.backend.operand_errors as error:
        raise ShapeError(f"a random tensor cannot have shape {list(shape)}: {error}") from error
    region = device.region
    if region is None:
        tensor = new_leaf(value, device, tracked=0)
        tensor.node.params = params
        return tensor
    node = leaf_node(device.next_id(), 0)
    node.op = RANDOM
    node.params = params
    node.region = region
    node.recompute = region.recomputes(node)
    tensor = wrap(value, node, device)
    if device.sink is not None:
        device.sink.emit(created(tensor, (), ()))
    return tensor
