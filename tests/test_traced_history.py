"""The history of checkpoints under each merge rule: counts, sharing, and how long lists may get."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from ckptcli.errors import HistoryTooLongError
from ckptcli.traced import Tensor, Tracer, grad
from ckptcli.traced.history import MOST_ENTRIES, RULES, Count

RIGHT_RULES = [rule for rule in RULES if rule != "left"]


def squared(x: Tensor, y: Tensor) -> Tensor:
    return y * y


def shifted(x: Tensor, y: Tensor) -> Tensor:
    return y + x


@pytest.mark.parametrize(
    ("merge", "turn", "entries"),
    [
        ("copy", squared, [1, 3, 7, 15, 31, 63, 127, 255, 511, 1023]),
        ("copy", shifted, range(1, 11)),
        ("shared", squared, range(1, 11)),
        ("shared", shifted, range(1, 11)),
        ("ptr-eq", squared, range(1, 11)),
        ("ptr-eq", shifted, range(1, 11)),
        ("dedup", squared, range(1, 11)),
        ("dedup", shifted, range(1, 11)),
        ("left", squared, range(1, 11)),
        ("left", shifted, range(1, 11)),
    ],
)
def test_entries_after_each_turn(
    merge: str, turn: Callable[[Tensor, Tensor], Tensor], entries: Sequence[int]
) -> None:
    x = Tracer(merge=merge).tensor([1.0])
    y = x
    for graphs, expected in enumerate(entries, start=1):
        y = turn(x, y)
        y.checkpoint()
        assert y.checkpoints() == Count(expected, graphs)
        assert grad(y, x).checkpoints() == Count(0, 0)
        assert (y + 1.0).exp().checkpoints() == y.checkpoints()


@pytest.mark.parametrize("merge", RIGHT_RULES)
def test_two_checkpoints_of_one_graph_are_two_entries(merge: str) -> None:
    x = Tracer(merge=merge).tensor([2.0])
    y = x * x
    one, other = y.clone(), y.clone()
    one.checkpoint()
    other.checkpoint()
    assert one.node is not other.node
    assert (one * other).checkpoints() == Count(2, 1)
    assert grad(one * other, x).evaluate().tolist() == [4 * 2.0**3]


@pytest.mark.parametrize(("merge", "entries"), [("copy", 3), ("ptr-eq", 3), ("dedup", 2)])
def test_lists_with_a_common_tail(merge: str, entries: int) -> None:
    """tenferro looks for no common tail, nor does a comparison of heads: 1 and 2 entries of 2
    graphs make 3.
    """
    x = Tracer(merge=merge).tensor([1.0])
    y = x * x
    y.checkpoint()
    z = y.exp()
    z.checkpoint()
    assert (y * z).checkpoints() == (z * y).checkpoints() == Count(entries, 2)
    assert (y * z + z * y).checkpoints().entries == {"copy": 6, "ptr-eq": 6, "dedup": 2}[merge]
    assert grad(y * z, x).evaluate().item() == pytest.approx(4.0 * np.e)


def test_a_list_is_counted_before_it_is_copied() -> None:
    """Ten million entries are refused although two lists of half of them would be made in no time
    if nothing was copied.
    """
    tracer = Tracer(merge="copy")
    y = tracer.tensor([1.0])
    for _ in range(3):
        y = y * y
        y.checkpoint()
    long = type(y.history)(y.history.head, MOST_ENTRIES - 6)
    big = Tensor(y.node, long, tracer)
    with pytest.raises(HistoryTooLongError) as error:
        big * y
    assert error.value.message == (
        "the history of checkpoints would get 10,000,001 entries, the most is 10,000,000: merge "
        "rule `copy` copies the left operand's list for every op"
    )
    assert error.value.exit_code == 1
    full = Tensor((y + 1.0).node, type(y.history)(y.history.head, MOST_ENTRIES), tracer)
    node, history = full.node, full.history
    with pytest.raises(HistoryTooLongError):
        full.checkpoint()
    assert (full.node, full.history) == (node, history)


def test_a_list_without_anything_new_is_not_copied() -> None:
    """Under `dedup` the longer list is taken as it is, where it holds the other."""
    x = Tracer(merge="dedup").tensor([1.0])
    y = x * x
    y.checkpoint()
    z = y.exp()
    z.checkpoint()
    assert (y * z).history is z.history
    assert [entry.leaf for entry in (z * y).history.entries()] == [z.node, y.node]


Program = list[tuple[str, int, int, bool]]

PROGRAMS: st.SearchStrategy[Program] = st.lists(
    st.tuples(
        st.sampled_from(["add", "sub", "mul", "sin", "tanh", "scale", "matmul", "transpose"]),
        st.integers(0, 7),
        st.integers(0, 7),
        st.booleans(),
    ),
    min_size=1,
    max_size=14,
)
"""Op, two operands counted from the newest value, and whether its result is checkpointed."""


def run(program: Program, merge: str, checkpoints: bool, clone: bool) -> list[bytes]:
    """Value, gradients and a second gradient, as bits."""
    tracer = Tracer(merge=merge)
    leaves = [tracer.tensor([[0.3, -0.2], [0.1, 0.4]]), tracer.tensor([[0.5, 0.2], [-0.7, 0.3]])]
    values = list(leaves)
    for name, first, second, checkpoint in program:
        a, b = values[-1 - first % len(values)], values[-1 - second % len(values)]
        if name in ("add", "sub", "mul", "matmul"):
            made = getattr(a, name)(b)
        else:
            made = a * 0.5 if name == "scale" else getattr(a, name)()
        values.append(made)
        if checkpoint and checkpoints:
            if clone:
                values[-1] = made.clone()
            made.checkpoint()
    loss = (values[-1] * values[-1]).sum()
    for leaf in leaves:
        loss = loss + leaf.sum()
    found: list[Any] = [loss]
    for leaf in leaves:
        first_gradient = grad(loss, leaf)
        second_loss = (first_gradient * first_gradient * leaf).sum()
        found += [first_gradient, grad(second_loss, leaf)]
    with np.errstate(all="ignore"):
        return [tensor.evaluate().tobytes() for tensor in found]


@pytest.mark.slow
@settings(max_examples=150, deadline=None)
@given(program=PROGRAMS, merge=st.sampled_from(RIGHT_RULES), clone=st.booleans())
def test_a_checkpoint_changes_no_bit(program: Program, merge: str, clone: bool) -> None:
    assert run(program, merge, True, clone) == run(program, merge, False, clone)


@settings(max_examples=60, deadline=None)
@given(program=PROGRAMS)
def test_shared_keeps_one_entry_for_each_graph(program: Program) -> None:
    tracer = Tracer()
    values = [tracer.tensor([0.3]), tracer.tensor([0.5])]
    done: dict[int, set[Any]] = {}
    for name, first, second, checkpoint in program:
        a, b = values[-1 - first % len(values)], values[-1 - second % len(values)]
        made = a * b if name in ("add", "sub", "mul", "matmul") else a.sin()
        sources = {a, b} if name in ("add", "sub", "mul", "matmul") else {a}
        reached = set().union(*(done.get(id(source), set()) for source in sources))
        if checkpoint:
            made.checkpoint()
            reached = reached | {made}
        done[id(made)] = reached
        values.append(made)
        assert made.checkpoints() == Count(len(reached), len(reached))


def keys(program: Program, merge: str) -> list[list[int | None]]:
    """The keys of each value's entries, newest first."""
    tracer = Tracer(merge=merge)
    values = [tracer.tensor([0.3]), tracer.tensor([0.5])]
    for name, first, second, checkpoint in program:
        a, b = values[-1 - first % len(values)], values[-1 - second % len(values)]
        values.append(a * b if name in ("add", "sub", "mul", "matmul") else a.sin())
        if checkpoint:
            values[-1].checkpoint()
    return [[e.leaf.key for e in v.history.entries()] if v.history else [] for v in values]


@settings(max_examples=60, deadline=None)
@given(program=PROGRAMS)
def test_the_repairs_lose_no_entry(program: Program) -> None:
    """`dedup` has each of `copy`'s once; `ptr-eq` has as many or more of them, `copy` the most."""
    of = {merge: keys(program, merge) for merge in ("copy", "ptr-eq", "dedup")}
    for copied, identical, distinct in zip(of["copy"], of["ptr-eq"], of["dedup"]):
        assert len(set(distinct)) == len(distinct)
        assert set(copied) == set(identical) == set(distinct)
        assert len(distinct) <= len(identical) <= len(copied)


LONG = """
import gc, sys, threading
gc.disable()
from ckptcli.traced import Tracer, grad
def work():
    tracer = Tracer(merge=sys.argv[1])
    rounds = int(sys.argv[2])
    x = tracer.tensor([1.0])
    y = x
    for n in range(rounds):
        y = y * y if sys.argv[3] == "mul" else y + x
        y.checkpoint()
    assert y.checkpoints().graphs == rounds, y.checkpoints()
    g = grad(y, x)
    assert g.checkpoints().entries == 0
    program = tracer.compiler.compile([g])
    with tracer.backend.quiet():
        value = program.run()[0]
    if sys.argv[3] == "add":
        assert value.tolist() == [rounds + 1.0]
    del program
    second = None
    if sys.argv[3] == "mul":
        second = grad(g, x)
    del g, second, x
    y = None
    sys.stdout.write("released\\n")
threading.stack_size(256 * 1024)
thread = threading.Thread(target=work)
thread.start()
thread.join()
"""
"""Everything in a thread with a stack of 256 KiB: whatever went down a chain would overflow it."""


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.parametrize(
    ("merge", "rounds", "turn"),
    [
        ("shared", 100_000, "mul"),
        ("shared", 300_000, "add"),
        ("copy", 17, "mul"),
        ("copy", 50_000, "add"),
        ("ptr-eq", 30_000, "mul"),
        ("dedup", 30_000, "mul"),
        ("left", 30_000, "mul"),
    ],
)
def test_long_chains_are_built_differentiated_and_released(
    merge: str, rounds: int, turn: str
) -> None:
    done = subprocess.run(
        [sys.executable, "-c", LONG, merge, str(rounds), turn],
        capture_output=True,
        encoding="utf-8",
        timeout=300,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "released\n", "")
