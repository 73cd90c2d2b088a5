"""The programs of the `chain` experiment: a state, one round, and what is known of the gradient."""

from __future__ import annotations

import math
from collections.abc import Callable
from statistics import median
from typing import Any, Protocol

from ckptcli import units
from ckptcli.backends.base import Backend
from ckptcli.errors import BindingError
from ckptcli.traced import Tensor, Tracer, grad
from ckptcli.traced.segments import Loop, Swept
from ckptcli.workloads.experiment import Clock, Fact
from ckptcli.workloads.traced_trg import Renormalisation, initial_tensor, segments
from ckptcli.workloads.trg_tensors import kept_ranks

BETA = 0.3
CHI = 16

REPEATS = 5
"""Of what is timed beside the rounds; medians are given."""


INSTEAD = (
    "the graph stays what it was and runs with data that is bound, as below; for a checkpoint give "
    "the leaf data, or prepare steps once and bind each value: --op trg --beta 0.3,0.44,0.5"
)
"""What to do about a placeholder."""


class ChainProgram(Protocol):
    """A state that goes on round by round."""

    @property
    def state(self) -> Tensor:
        """What is checkpointed after each round."""

    @property
    def leaf(self) -> Tensor:
        """What is differentiated for."""

    def advance(self) -> None:
        """One round, and its checkpoint where there are any."""

    def output(self) -> Tensor:
        """The scalar that is differentiated."""

    def facts(self, wrong: list[str], clock: Clock) -> list[Fact]:
        """What the state after the last round shows; adds to `wrong` what is not right."""

    def release(self) -> None:
        """Let go of the state."""


class Squares:
    """y = y * y from x = 1: y stays 1, dy/dx is 2^n."""

    usual_rounds = 18

    def __init__(self, tracer: Tracer) -> None:
        self.leaf = self.made_leaf(tracer)
        self.state = self.leaf
        self.rounds = 0

    def made_leaf(self, tracer: Tracer) -> Tensor:
        """x."""
        return tracer.tensor([1.0])

    def evaluated(self, tensor: Tensor) -> float:
        """The value of a tensor of this program."""
        return float(tensor.evaluate().item())

    def advance(self) -> None:
        self.state = self.turned(self.state)
        self.state.checkpoint()
        self.rounds += 1

    def turned(self, y: Tensor) -> Tensor:
        """The state one round later."""
        return y * y

    def expected(self) -> float:
        """The gradient after the rounds so far; infinite where float64 has no such number."""
        return math.ldexp(1.0, self.rounds) if self.rounds < 1024 else math.inf

    def output(self) -> Tensor:
        return self.state

    def facts(self, wrong: list[str], clock: Clock) -> list[Fact]:
        expected = self.expected()
        start_s = clock()
        found = self.evaluated(grad(self.state, self.leaf))
        evaluate_s = clock() - start_s
        if found != expected:
            wrong.append(f"the gradient is {found!r}, it has to be {expected!r}")
        finite = found if math.isfinite(found) else None
        return [
            Fact(
                "gradient", finite, f"gradient {found:.17g}, as it has to be" * (found == expected)
            ),
            Fact(
                "gradient_evaluated_s",
                evaluate_s,
                f"making the gradient and evaluating it takes {units.duration(evaluate_s)}",
            ),
        ]

    def release(self) -> None:
        self.state = self.leaf


class Sums(Squares):
    """y = y + x from x = 1: dy/dx is n + 1."""

    def turned(self, y: Tensor) -> Tensor:
        return y + self.leaf

    def expected(self) -> float:
        return self.rounds + 1.0


class Placeholders(Squares):
    """y = y * y from a placeholder: a checkpoint has no data to run on, and every one is refused.

    The refusals are what this program is about: it is right when they come and change nothing, and
    when the graph that stays runs with data that is bound.
    """

    usual_rounds = 1

    def __init__(self, tracer: Tracer) -> None:
        super().__init__(tracer)
        self.refused = 0
        self.changed = 0
        self.told: dict[str, str] = {}

    def made_leaf(self, tracer: Tracer) -> Tensor:
        return tracer.input((1,))

    def advance(self) -> None:
        self.state = self.turned(self.state)
        self.rounds += 1
        before = self.state.node
        try:
            self.state.checkpoint()
        except BindingError as error:
            self.refused += 1
            self.told[error.message] = error.hint or ""
        self.changed += self.state.node is not before

    def evaluated(self, tensor: Tensor) -> float:
        return float(tensor.evaluate([(self.leaf, [1.0])]).item())

    def facts(self, wrong: list[str], clock: Clock) -> list[Fact]:
        if self.refused != self.rounds or self.changed:
            wrong.append(
                f"{self.refused} of {self.rounds} checkpoints of a graph with a placeholder were "
                f"refused, and {self.changed} changed their tensor"
            )
        message, hint = " / ".join(self.told), " / ".join(self.told.values())
        return [
            Fact("refused", self.refused, ""),
            Fact("refusal", message, f"checkpoint on placeholder graph: {message}"),
            Fact("hint", hint, f"hint: {hint}"),
            Fact("instead", INSTEAD, INSTEAD),
            *super().facts(wrong, clock),
        ]


class Trg:
    """One step of the TRG a round; the scalar is lnZ/N after the steps so far."""

    usual_rounds = 4

    def __init__(self, tracer: Tracer, checkpoints: bool, beta: float = BETA) -> None:
        self.tracer = tracer
        self.checkpoints = checkpoints
        self.beta = beta
        self.leaf = tracer.tensor([beta])
        self.loop = Renormalisation(initial_tensor(self.leaf))

    @property
    def state(self) -> Tensor:
        return self.loop.tensor

    def advance(self) -> None:
        self.loop.advance(kept_ranks(self.loop.steps + 1, CHI)[-1])
        if self.checkpoints:
            self.loop.tensor.checkpoint()

    def output(self) -> Tensor:
        return self.loop.value()

    def facts(self, wrong: list[str], clock: Clock) -> list[Fact]:
        steps = self.loop.steps
        plain = Trg(Tracer(self.tracer.backend), False, self.beta)
        for _ in range(steps):
            plain.advance()
        return [
            *_compared(self, plain, wrong, clock),
            *_segments(self.tracer.backend, steps, self.beta, clock),
        ]

    def release(self) -> None:
        self.loop = Renormalisation(self.leaf)


USUAL_ROUNDS = {
    "mul": Squares.usual_rounds,
    "add": Sums.usual_rounds,
    "trg": Trg.usual_rounds,
    "placeholder": Placeholders.usual_rounds,
}


def opened(op: str, tracer: Tracer, beta: float) -> ChainProgram:
    """The program of `op`, with checkpoints."""
    if op == "trg":
        return Trg(tracer, True, beta)
    return {"mul": Squares, "add": Sums, "placeholder": Placeholders}[op](tracer)


def _compared(program: Trg, plain: Trg, wrong: list[str], clock: Clock) -> list[Fact]:
    """The gradient with and without checkpoints: time of `grad`, and bits."""
    times_s: dict[bool, list[float]] = {True: [], False: []}
    bits: dict[bool, float] = {}
    for one in (program, plain) * REPEATS:
        output = one.output()
        start_s = clock()
        gradient = grad(output, one.leaf)
        times_s[one.checkpoints].append(clock() - start_s)
        if one.checkpoints not in bits:
            bits[one.checkpoints] = float(gradient.evaluate().item())
    value = float(program.output().evaluate().item())
    same = bits[True] == bits[False]
    if not same:
        wrong.append(f"the gradient is {bits[True]!r}, without checkpoints {bits[False]!r}")
    with_s, without_s = median(times_s[True]), median(times_s[False])
    return [
        Fact("value", value, f"lnZ/N {value:.15f}"),
        Fact("gradient", bits[True], f"gradient {bits[True]:.15f}"),
        Fact(
            "same_bits",
            same,
            f"without checkpoints {'the same bits' if same else 'another number'}",
        ),
        Fact(
            "grad_s",
            {"with_checkpoints": with_s, "without": without_s},
            f"grad takes {units.duration(with_s)} with a checkpoint after each step, "
            f"{units.duration(without_s)} without",
        ),
    ]


def _segments(backend: Backend, steps: int, at: float, clock: Clock) -> list[Fact]:
    """The steps prepared once: replaying each forward against keeping residuals."""
    tracer = Tracer(backend)
    beta = backend.asarray([at], "float64", copy=True)
    loops = {
        name: segments(tracer, kept_ranks(steps, CHI), keep_residuals=name == "residuals")
        for name in ("replay", "residuals")
    }
    value_s: dict[str, list[float]] = {name: [] for name in loops}
    gradient_s: dict[str, list[float]] = {name: [] for name in loops}
    swept: dict[str, Swept] = {}
    for _ in range(REPEATS):
        for name, loop in loops.items():
            value_s[name].append(_timed(loop.value, beta, clock)[0])
            taken_s, swept[name] = _timed(loop.value_and_gradient, beta, clock)
            gradient_s[name].append(taken_s)
    return [_segment_fact(name, loops[name], swept[name], value_s, gradient_s) for name in loops]


def _timed(function: Callable[[Any], Swept], beta: Any, clock: Clock) -> tuple[float, Swept]:
    start_s = clock()
    swept = function(beta)
    return clock() - start_s, swept


def _segment_fact(
    name: str,
    loop: Loop,
    swept: Swept,
    value_s: dict[str, list[float]],
    gradient_s: dict[str, list[float]],
) -> Fact:
    value, gradient = median(value_s[name]), median(gradient_s[name])
    kept_bytes = loop.kept_bytes(swept)
    return Fact(
        f"segments_{name}",
        {
            "value_s": value,
            "value_and_gradient_s": gradient,
            "kept_bytes": kept_bytes,
            "gradient": float(loop.tracer.backend.to_numpy(swept.gradient).item()),
        },
        f"prepared steps, {name}: value {units.duration(value)}, value and gradient "
        f"{units.duration(gradient)} ({units.ratio(gradient / value)} of it), "
        f"{units.size(kept_bytes)} kept",
    )
