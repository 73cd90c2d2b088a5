"""What the engine tells beside a pass, and takes: handles, regions, hand-overs, backups."""

from __future__ import annotations

import weakref
from typing import Any

import numpy as np
import pytest

from ckptcli import Device, Tensor
from ckptcli.backends import open_backend
from ckptcli.checkpoint.policies import dots_saveable
from ckptcli.checkpoint.strategies.base import Strategy
from ckptcli.events import RegionClosed, RegionOpened
from ckptcli.graph import BACKED_UP, BackedUp, Node
from ckptcli.passes.run import open_pass
from ckptcli.workloads.silu import SiluWorkload

from .helpers import gradient, held_ids, leaf, of_type, same_bits, unwatched, watched


def test_a_handle_ends_with_its_last_variable() -> None:
    ends: list[int] = []
    alive: dict[int, weakref.ref[Tensor]] = {}

    def follow(tensor: Tensor) -> None:
        node_id = tensor.node.id
        alive[id(tensor)] = weakref.ref(tensor, lambda _: ends.append(node_id))

    dev = unwatched("none").watched_by(watched("none")[1], handles=follow)
    x = leaf(dev, [1.0, 2.0])  # the untracked handle of node 0 ends here
    y = x.sigmoid()
    z = y * y
    assert ends == [0]
    del y
    assert ends == [0, 1]
    del z, x
    assert ends == [0, 1, 2, 0]


def test_a_region_says_when_it_opens() -> None:
    dev, recorder = watched("none")
    x = leaf(dev, [1.0])
    with x.region("outer"), x.region("inner", dots_saveable):
        y = x.sigmoid()
    del y
    opened = of_type(recorder.events, RegionOpened)
    assert [(o.name, o.depth) for o in opened] == [("outer", 1), ("inner", 2)]
    assert opened[1].policy is dots_saveable
    assert recorder.events.index(opened[1]) < recorder.events.index(
        of_type(recorder.events, RegionClosed)[0]
    )


def _shared_weights(dev: Device) -> tuple[dict[str, Tensor], Tensor]:
    """`w` is used by three steps, `b` by one; the two gradients of a sum are one array."""
    w, b, c = (
        leaf(dev, [[0.5, -0.25], [1.0, 2.0]]),
        leaf(dev, [[1.0, 1.0]]),
        leaf(dev, [[2.0, 3.0]]),
    )
    h = leaf(dev, [[1.0, 2.0]], tracked=False)
    for _ in range(3):
        h = h.matmul(w).sigmoid()
    return {"w": w, "b": b, "c": c}, (h + (b + c)).sum()


@pytest.mark.parametrize("strategy", ["none", "balanced"])
def test_a_consumed_gradient_is_complete_and_handed_over_once(strategy: str) -> None:
    leaves, root = _shared_weights(unwatched(strategy))
    expected = root.backward()
    again, root = _shared_weights(unwatched(strategy))
    taken: dict[int, Any] = {}

    def consume(node_id: int, given: Tensor) -> None:
        assert node_id not in taken
        taken[node_id] = given.numpy().copy()

    assert len(root.backward(consume)) == 0
    for name, tensor in leaves.items():
        assert same_bits([taken[again[name].node.id]], [gradient(expected, tensor)])


def test_a_consumed_gradient_is_let_go_of_before_the_next_step() -> None:
    """Weight gradients of a chain never live together."""
    network = SiluWorkload(4, 8, 2).load(unwatched("none"))
    root = network.forward().root
    alive: list[Any] = []

    def consume(_: int, given: Tensor) -> None:
        assert all(reference() is None for reference in alive)
        alive.append(weakref.ref(given.value))

    root.backward(consume=consume)
    assert len(alive) == 4


class _BacksUp(Strategy):
    """Holds every value, and backs up what it is computed from."""

    keyword = "backs_up"
    label = "BacksUp"

    def recomputes(self, node: Node) -> BackedUp:
        return BACKED_UP


def test_a_value_held_with_backups_can_be_computed_again() -> None:
    dev = unwatched("none").gradient_checkpointing(_BacksUp())
    x = leaf(dev, [[1.0, 2.0]])
    w = leaf(dev, [[0.5], [1.0]])
    p = x.matmul(w)
    s = p.sigmoid()
    root = (p * s).sum()
    assert {x.node.id, w.node.id, p.node.id, s.node.id} <= held_ids(root)
    assert not p.node.recompute
    assert [value is p.value for value in s.node.backup_values] == [True]
    assert np.array_equal(gradient(root.backward(), x), _gradient_of_x("none"))


def _gradient_of_x(strategy: str) -> Any:
    dev = unwatched(strategy)
    x, w = leaf(dev, [[1.0, 2.0]]), leaf(dev, [[0.5], [1.0]])
    p = x.matmul(w)
    return gradient((p * p.sigmoid()).sum().backward(), x)


class _Counts(Strategy):
    """Counts passes and, in each, the nodes from its beginning; heeds no regions."""

    keyword = "counts"
    label = "Counts"
    opens_regions = False

    def __init__(self) -> None:
        self.passes: list[int] = []

    @property
    def name(self) -> str:
        return "counts"

    def pass_begins(self) -> None:
        self.passes.append(0)

    def recomputes(self, node: Node) -> bool:
        self.passes[-1] += 1
        return False


def test_a_strategy_is_told_where_each_pass_begins() -> None:
    strategy = _Counts()
    opened = open_pass(SiluWorkload(2, 4, 1), strategy, open_backend("numpy"))
    for _ in range(3):
        opened.backward(opened.forward())
    assert strategy.passes == [7, 7, 7]


def test_a_pass_that_nobody_counts_is_the_networks_own_method() -> None:
    opened = open_pass(SiluWorkload(1, 4, 1), Strategy(), open_backend("numpy"))
    assert opened.forward.__name__ == "forward"


def test_a_strategy_without_regions_decides_inside_them_too() -> None:
    strategy = _Counts()
    strategy.pass_begins()
    dev = unwatched("none").gradient_checkpointing(strategy)
    x = leaf(dev, [1.0])
    with x.region("block"):
        y = x.sigmoid().sigmoid()
    assert strategy.passes == [2]
    assert y.node.region is None
