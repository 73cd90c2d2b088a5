"""How far `ckpt check` can be trusted: what it calls wrong that is right, and what wrong it misses.

    scripts/bench gradient_check [--seeds 1000] [--faults 1000]

kinks   networks of relu, max pools, clamps and abs with random weights, some rounded to halves,
        some with zero biases and padded rows, so that kinks are hit exactly: how often a right
        gradient is called wrong.
faults  random programs of which one op's gradient is too large by 1e-4: how often that is seen
        where a direction that it concerns can be used.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ckptcli.autodiff.op import Op
from ckptcli.autodiff.ops import DECLARATIONS
from ckptcli.checkpoint.strategies.none import NoCheckpointing
from ckptcli.measure.difference import DirectionalDifference
from ckptcli.verify.differences import directional_differences
from ckptcli.workloads.graph_case import GraphCase, OpCall

SHARE = 1e-4
"""How much too large a planted gradient is."""

Rng = np.random.Generator


@dataclass(slots=True)
class Program:
    """The ops of a graph file, as they are added."""

    calls: list[OpCall] = field(default_factory=list)

    def leaf(self, data: Any, requires_grad: bool = True) -> int:
        self.calls.append(OpCall("leaf", (), {}, np.asarray(data, float), requires_grad))
        return len(self.calls) - 1

    def op(self, name: str, *inputs: int, **arguments: Any) -> int:
        self.calls.append(OpCall(name, inputs, arguments))
        return len(self.calls) - 1

    def case(self) -> GraphCase:
        return GraphCase("program", 0, tuple(self.calls), len(self.calls) - 1, None)


def kinked_network(seed: int) -> GraphCase:
    """Layers of a product, a bias, and what bends."""
    rng = np.random.default_rng(seed)
    is_rounded = rng.random() < 0.3

    def drawn(*shape: int) -> Any:
        values = rng.normal(size=shape)
        return np.round(2.0 * values) / 2.0 if is_rounded else values

    program = Program()
    rows, width = int(rng.integers(2, 7)), int(rng.integers(2, 7))
    x = drawn(rows, width)
    x[rng.random(rows) < 0.2] = 0.0
    h = program.leaf(x, requires_grad=False)
    for _ in range(int(rng.integers(1, 5))):
        wider = int(rng.integers(2, 7))
        h = program.op("matmul", h, program.leaf(drawn(width, wider)))
        bias = np.zeros((1, wider)) if rng.random() < 0.3 else drawn(1, wider)
        h = program.op("add", h, program.leaf(bias))
        h, width = BENDS[int(rng.integers(len(BENDS)))](program, h, rows, wider)
    program.op("sum", h)
    return program.case()


def _pooled(program: Program, h: int, rows: int, width: int) -> tuple[int, int]:
    h = program.op("reshape", h, shape=[1, rows, width])
    h = program.op("max_pool1d", h, kernel_size=2)
    return program.op("reshape", h, shape=[rows, width - 1]), width - 1


BENDS: tuple[Callable[[Program, int, int, int], tuple[int, int]], ...] = (
    lambda program, h, rows, width: (program.op("relu", h), width),
    lambda program, h, rows, width: (program.op("abs", h), width),
    lambda program, h, rows, width: (program.op("clamp", h, min=-0.5, max=1.0), width),
    lambda program, h, rows, width: (program.op("max_dim", h, dim=1), 1),
    _pooled,
)

UNARY = (
    *("exp", "sin", "cos", "tanh", "sigmoid", "gelu", "relu", "square", "atan", "neg", "abs"),
    *("log_sigmoid", "erf"),
)
BINARY = ("add", "sub", "mul", "matmul")


def random_program(rng: Rng) -> GraphCase:
    """Three to ten ops on a square matrix and as many more leaves as they take."""
    program = Program()
    size = int(rng.integers(2, 5))

    def leaf() -> int:
        return program.leaf(rng.normal(size=(size, size)))

    h = leaf()
    for _ in range(int(rng.integers(3, 11))):
        if rng.random() < 0.6:
            h = program.op(str(rng.choice(UNARY)), h)
        else:
            h = program.op(str(rng.choice(BINARY)), h, leaf())
    program.op("sum", program.op("sin", h))
    return program.case()


@contextmanager
def too_large(op: Op) -> Iterator[None]:
    """While it is open, the gradients of `op` are too large by `SHARE`."""
    backward = op.backward

    def scaled(xp: Any, *arguments: Any) -> Any:
        def larger(gradient: Any) -> Any:
            return None if gradient is None else xp.multiply(gradient, 1.0 + SHARE)

        found = backward(xp, *arguments)
        return tuple(map(larger, found)) if isinstance(found, tuple) else larger(found)

    object.__setattr__(op, "backward", scaled)
    try:
        yield
    finally:
        object.__setattr__(op, "backward", backward)


def differences(case: GraphCase) -> list[DirectionalDifference]:
    return directional_differences(case, NoCheckpointing())


@dataclass(frozen=True, slots=True)
class Alarms:
    """Of right gradients: the networks called wrong, and how many directions could be used."""

    false: list[int]
    usable: int
    directions: int


def false_alarms(seeds: int) -> Alarms:
    false, usable, directions = [], 0, 0
    for seed in range(seeds):
        found = differences(kinked_network(seed))
        usable += sum(d.is_usable for d in found)
        directions += len(found)
        if any(d.is_usable and not d.agrees for d in found):
            false.append(seed)
    return Alarms(false, usable, directions)


@dataclass(frozen=True, slots=True)
class Faults:
    """Of planted faults: which were found; which were missed though a direction could tell."""

    found: int
    missed: list[tuple[int, str]]
    undecided: int


def planted_faults(number: int) -> Faults:
    found, missed, undecided = 0, [], 0
    for seed in range(number):
        rng = np.random.default_rng(seed)
        case = random_program(rng)
        names = sorted({call.name for call in case.calls} & DECLARATIONS.keys())
        name = str(rng.choice(names))
        right = differences(case)
        assert all(d.agrees for d in right if d.is_usable), f"seed {seed}: a false alarm"
        with too_large(DECLARATIONS[name]):
            wrong = differences(case)
        if any(d.is_usable and not d.agrees for d in wrong):
            found += 1
        elif any(w.is_usable and w.gradient != r.gradient for w, r in zip(wrong, right)):
            missed.append((seed, name))
        else:
            undecided += 1
    return Faults(found, missed, undecided)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=1000)
    parser.add_argument("--faults", type=int, default=1000)
    arguments = parser.parse_args()
    with np.errstate(all="ignore"):
        alarms = false_alarms(arguments.seeds)
        print(
            f"kinks: {len(alarms.false)} of {arguments.seeds} right gradients called wrong "
            f"{alarms.false or ''}; {alarms.usable} of {alarms.directions} directions usable"
        )
        faults = planted_faults(arguments.faults)
        print(
            f"faults of {SHARE:g}: {faults.found} found, {len(faults.missed)} missed "
            f"{faults.missed or ''}, {faults.undecided} where no usable direction is concerned"
        )


if __name__ == "__main__":
    main()
