"""`scripts/fuzz ops`: every op against PyTorch in float64, rounded, on operands that are hard.

Where float64 itself leaves the range, closed forms are (`tests/fuzz_closed_forms.py`).

A case is an op, its operands and a subset of them that is tracked. Value and gradients are those of
the reference on every library, and under every strategy the same bits as under `none`. What a case
is follows from its number and the seed alone.

    scripts/fuzz ops [--seconds N] [--seed S] [--op NAME] [--case NUMBER]
"""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from ckptcli import Device, device
from ckptcli.errors import EngineError
from tests.cupy_stand_in import stand_in_device
from tests.fuzz_closed_forms import FORMS, wrong_elements
from tests.fuzz_elementwise import ELEMENTWISE
from tests.fuzz_programs import Array, Program, drawn_values
from tests.fuzz_structural import STRUCTURAL
from tests.helpers import same_bits

MAKERS = {**ELEMENTWISE, **STRUCTURAL}
CLOSED = "closed form of "
OPS = (*MAKERS, *(f"{CLOSED}{name}" for name in FORMS))
LIBRARIES: dict[str, Callable[[], Device]] = {
    "numpy": lambda: device("numpy", "cpu"),
    "torch": lambda: device("torch", "cpu"),
    "cupy": stand_in_device,
}
STRATEGIES = ("none", "balanced", "remat", "sqrt")
SMALLEST = 6 * float(np.finfo(np.float32).smallest_subnormal)
LARGEST = float(np.finfo(np.float32).max)
COTANGENTS = (1.0, 2.0, -0.5)


@dataclass(frozen=True)
class Finding:
    """A case that is wrong: what of it, and what was expected."""

    op: str
    number: int
    what: str
    operands: Sequence[Array]
    expected: Any
    found: Any
    wrong: Any = None

    def __str__(self) -> str:
        lines = [f"{self.op}, case {self.number}: {self.what}"]
        lines += [f"    of shape {list(each.shape)}:\n{each}" for each in self.operands]
        lines += [f"  expected {self.expected}", f"  found    {self.found}"]
        if self.wrong is not None:
            lines += list(self._elements())
        return "\n".join(lines)

    def _elements(self) -> Iterator[str]:
        """The first that are wrong, with what the operands are there."""
        for index in np.argwhere(self.wrong)[:4].tolist():
            at = tuple(index)
            here = [each[at] for each in self.operands if each.shape == self.wrong.shape]
            yield f"  at {at}: of {here} expected {self.expected[at]}, found {self.found[at]}"


def devices(libraries: Iterable[str]) -> dict[str, dict[str, Device]]:
    """Of each library a device a strategy."""
    return {
        library: {
            strategy: LIBRARIES[library]().autodiff().gradient_checkpointing(strategy)
            for strategy in STRATEGIES
        }
        for library in libraries
    }


def outcome(
    dev: Device, program: Program, operands: Sequence[Array], mask: int, cotangent: Array
) -> list[Array]:
    """The value, and the gradients of the tracked operands.

    Each operand is negated twice before, so that a strategy has something to compute again.
    """
    leaves = [dev.tensor(each) for each in operands]
    tracked = [
        leaf.require_grad() if mask >> place & 1 else leaf for place, leaf in enumerate(leaves)
    ]
    for _ in dev.layers(1):
        output = program.ours(*[leaf.neg().neg() for leaf in tracked])
    root = (output * dev.tensor(cotangent)).sum()
    gradients = root.backward()
    found = [output.numpy()]
    for leaf in tracked:
        if leaf.is_tracked:
            gradient = gradients.wrt(leaf)
            found.append(np.zeros(leaf.shape, "float32") if gradient is None else gradient.numpy())
    return found


def reference(
    program: Program, operands: Sequence[Array], mask: int, cotangent: Any
) -> tuple[list[Array], Array]:
    """The same of PyTorch in float64, and the cotangent that it was given."""
    leaves = [torch.tensor(each.astype(np.float64)) for each in operands]
    for place, leaf in enumerate(leaves):
        leaf.requires_grad_(bool(mask >> place & 1))
    output = program.theirs(*leaves)
    drawn = np.asarray(cotangent(tuple(output.shape)), dtype=np.float32)
    expected = [output.detach().numpy()]
    if output.requires_grad:
        output.backward(torch.tensor(drawn.astype(np.float64)))
    for place, leaf in enumerate(leaves):
        if mask >> place & 1:
            zeros = np.zeros(tuple(leaf.shape))
            expected.append(zeros if leaf.grad is None else leaf.grad.numpy())
    return expected, drawn


def far(found: Array, expected: Array, program: Program) -> Any:
    """Where `found` is none of the numbers that rounding may lead to.

    A derivative that float32 cannot hold is infinite, though half of it, by the cotangent, is not.
    """
    with np.errstate(all="ignore"):
        rounded = expected.astype(np.float32).astype(np.float64)
        allowed = np.abs(expected) * program.rtol + program.atol + SMALLEST
        near = np.abs(found.astype(np.float64) - expected) <= allowed
        at_the_end = (np.abs(expected) > LARGEST * 0.99) & (np.abs(found) > LARGEST * 0.98)
        at_the_end |= (np.abs(expected) > LARGEST * 0.49) & np.isinf(found)
        at_the_end &= np.sign(found) == np.sign(expected)
    return ~((found == rounded) | near | at_the_end | (np.isnan(found) & np.isnan(rounded)))


def case(op: str, number: int, seed: int, devs: dict[str, dict[str, Device]]) -> Iterator[Finding]:
    """What is wrong with one case."""
    rng = np.random.Generator(np.random.PCG64([seed, number]))
    if op.startswith(CLOSED):
        yield from _closed(op, number, rng, devs)
        return
    program = MAKERS[op](rng)
    operands = [drawn_values(rng, shape, program.kind) for shape in program.shapes]
    mask = int(rng.integers(1, 1 << len(operands)))
    choose = lambda shape: rng.choice(COTANGENTS, shape)  # noqa: E731
    try:
        expected, cotangent = reference(program, operands, mask, choose)
    except (RuntimeError, IndexError) as error:
        yield Finding(op, number, f"PyTorch refuses: {error}", operands, 0, 0)
        return
    places = [place for place in range(len(operands)) if mask >> place & 1]
    for library, by_strategy in devs.items():
        try:
            found = outcome(by_strategy["none"], program, operands, mask, cotangent)
        except EngineError as error:
            yield Finding(op, number, f"{library} refuses: {error}", operands, expected[0], 0)
            continue
        yield from _compared(op, number, library, program, operands, places, expected, found)
        for strategy in STRATEGIES[1:]:
            other = outcome(by_strategy[strategy], program, operands, mask, cotangent)
            if not same_bits(found, other):
                what = f"{library} under {strategy} has other bits"
                yield Finding(op, number, what, operands, found[-1], other[-1])


def _closed(
    op: str, number: int, rng: np.random.Generator, devs: dict[str, dict[str, Device]]
) -> Iterator[Finding]:
    dtype = str(rng.choice(["float32", "float64"]))
    seed = int(rng.integers(1 << 32))
    for library, by_strategy in devs.items():
        drawn = np.random.Generator(np.random.PCG64(seed))
        for what, here, expected, found in wrong_elements(
            by_strategy["none"], op.removeprefix(CLOSED), dtype, drawn
        ):
            yield Finding(op, number, f"{library}, {what}", [here], expected, found)


def _compared(
    op: str,
    number: int,
    library: str,
    program: Program,
    operands: Sequence[Array],
    places: Sequence[int],
    expected: Sequence[Array],
    found: Sequence[Array],
) -> Iterator[Finding]:
    for index, (ours, theirs) in enumerate(zip(found, expected, strict=True)):
        what = f"{library}, value" if not index else f"{library}, gradient of {places[index - 1]}"
        if ours.shape != theirs.shape:
            yield Finding(op, number, f"{what}: shape", operands, theirs.shape, ours.shape)
            continue
        wrong = far(ours, theirs, program)
        with np.errstate(all="ignore"):
            if index and program.skipped is not None:
                skipped = np.asarray(program.skipped(operands, places[index - 1]))
                wrong &= ~_reduced(skipped, ours.shape)
            if not index and program.value_skipped is not None:
                wrong &= ~program.value_skipped(operands)
        if wrong.any():
            yield Finding(op, number, what, operands, theirs, ours, wrong)


def _reduced(skipped: Array, shape: tuple[int, ...]) -> Array:
    """Which elements of an operand of `shape` have a skipped place, after broadcasting."""
    while skipped.ndim > len(shape):
        skipped = skipped.any(axis=0)
    for axis, size in enumerate(shape):
        if size == 1 and skipped.shape[axis] != 1:
            skipped = skipped.any(axis=axis, keepdims=True)
    return np.broadcast_to(skipped, shape)


def cases(seed: int, ops: Sequence[str], first: int = 0) -> Iterator[tuple[str, int]]:
    """Each op in turn, without end."""
    number = first
    while True:
        yield ops[number % len(ops)], number
        number += 1


def run(
    seed: int,
    ops: Sequence[str],
    more: Callable[[int], bool],
    libraries: Iterable[str] = ("numpy", "torch"),
) -> tuple[int, list[Finding]]:
    """How many cases were run while `more(count)` said so, and what they found."""
    devs = devices(libraries)
    findings: list[Finding] = []
    count = 0
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        for op, number in cases(seed, ops):
            if not more(count):
                return count, findings
            findings += case(op, number, seed, devs)
            count += 1
    raise AssertionError("cases() has no end")


def main() -> int:
    parser = argparse.ArgumentParser(prog="scripts/fuzz ops", description=__doc__)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--op", choices=sorted(OPS))
    parser.add_argument("--count", type=int, help="this many cases, instead of a time")
    arguments = parser.parse_args()
    ops = [arguments.op] if arguments.op else OPS
    end = time.monotonic() + arguments.seconds
    more: Callable[[int], bool] = lambda count: time.monotonic() < end  # noqa: E731
    if arguments.count is not None:
        more = lambda count: count < arguments.count  # noqa: E731
    count, findings = run(arguments.seed, ops, more, LIBRARIES)
    for finding in findings:
        print(finding)
    print(f"{count} cases of {len(ops)} ops, seed {arguments.seed}: {len(findings)} finding(s)")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
