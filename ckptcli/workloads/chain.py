"""`chain`: what a checkpoint each round costs, by the rule that merges histories of checkpoints.

`mul` is y = y * y and `add` y = y + x from x = 1, `trg` one step of the TRG a round, chi = 16 and
beta = 0.3; after each round the state is checkpointed. Values stay finite, and every gradient is
known: 2^n, n + 1, and that of the TRG without checkpoints.

Source: the second seed document's minimal experiment, and its TRG with checkpoints.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ckptcli import units
from ckptcli.backends.base import Backend
from ckptcli.errors import InactiveOutputError, UsageError
from ckptcli.options.points import number, points
from ckptcli.options.workload import WorkloadOptions
from ckptcli.traced import Tensor, Tracer, grad, vjp
from ckptcli.traced.program import instruction_count
from ckptcli.workloads.chain_betas import BetaExperiment
from ckptcli.workloads.chain_programs import BETA, USUAL_ROUNDS, ChainProgram, opened
from ckptcli.workloads.experiment import Clock, Experiment, Fact, Findings, Row, Tell
from ckptcli.workloads.registry import experiment
from ckptcli.workloads.trg_tensors import MOST_BETA

MEASURED_TO = 32
"""Every round up to this one is measured, then those at powers of ten, and the last."""

TOLD_EVERY = 1000

BYTES_OF_A_ROUND = 2000
"""Of a round of `mul` or `add`: nodes, arrays, and its share of a gradient's graph."""


_UNUSED = {"trg": frozenset[str](), "placeholder": frozenset({"beta", "merge"})}


def is_measured(number: int, rounds: int) -> bool:
    """Whether round `number` of `rounds` is measured: all of them would take quadratic time."""
    digits = str(number)
    power = digits[0] == "1" and not digits[1:].strip("0")
    return number <= MEASURED_TO or power or number == rounds


@dataclass(frozen=True)
class ChainExperiment:
    """`rounds` rounds of `op` with a checkpoint after each, under merge rule `merge`."""

    op: str
    rounds: int
    merge: str
    beta: float = BETA

    @property
    def title(self) -> str:
        return f"chain, {', '.join(f'{name} = {value}' for name, value in self._options.items())}"

    @property
    def settings(self) -> dict[str, object]:
        return {"name": "chain", **self._options}

    @property
    def _options(self) -> dict[str, object]:
        """What it looks at."""
        every = {"op": self.op, "rounds": self.rounds, "merge": self.merge, "beta": self.beta}
        return {name: value for name, value in every.items() if name not in self.unused}

    @property
    def variant(self) -> str:
        return f"--op {self.op}"

    @property
    def unused(self) -> frozenset[str]:
        return _UNUSED.get(self.op, frozenset({"beta"}))

    @property
    def selection(self) -> str:
        return (
            f"measured: rounds 1 to {MEASURED_TO}, powers of ten and the last; "
            "build: mean of the rounds since the row before; "
            "instructions: of the program that the gradient's graph is compiled to; "
            "grad: making the gradient's graph; release: letting go of it"
        )

    @property
    def shrink_hint(self) -> str:
        return "use fewer --rounds"

    def needed_bytes(self) -> int:
        return self.rounds * BYTES_OF_A_ROUND

    def measure(self, findings: Findings, backend: Backend, clock: Clock, tell: Tell) -> None:
        """Rows for the selected rounds, then what the last state shows."""
        tracer = Tracer(backend, self.merge)
        if "merge" not in self.unused:
            findings.facts.append(_both_sides(Tracer(backend, self.merge)))
        program = opened(self.op, tracer, self.beta)
        tenth = max(1, self.rounds // 10)
        marks_s = {0: 0.0}
        spent_s = 0.0
        measured, before_s = 0, 0.0
        with tracer.backend.quiet():
            for number in range(1, self.rounds + 1):
                start_s = clock()
                program.advance()
                spent_s += clock() - start_s
                if number in (tenth, self.rounds - tenth, self.rounds):
                    marks_s[number] = spent_s
                if number % TOLD_EVERY == 0 or self.op == "trg":
                    tell(number, self.rounds)
                if is_measured(number, self.rounds):
                    mean_s = (spent_s - before_s) / (number - measured)
                    findings.rounds.append(_row(program, number, mean_s, clock))
                    measured, before_s = number, spent_s
            if self.rounds >= 2 * MEASURED_TO:
                findings.facts.append(_constancy(marks_s, tenth, self.rounds))
            findings.facts += program.facts(findings.wrong, clock)
            findings.facts.append(_released(program, clock))


def _row(program: ChainProgram, number: int, build_s: float, clock: Clock) -> Row:
    """One measured round."""
    count = program.state.checkpoints()
    output = program.output()
    start_s = clock()
    gradient = grad(output, program.leaf)
    grad_s = clock() - start_s
    on_gradient = gradient.checkpoints().entries
    instructions = instruction_count([gradient])
    on_output = {} if output is program.state else _entries_on(output)
    start_s = clock()
    del gradient
    release_s = clock() - start_s
    return {
        "round": number,
        "entries": count.entries,
        "graphs": count.graphs,
        **on_output,
        "entries_on_gradient": on_gradient,
        "instructions": instructions,
        "build_s": build_s,
        "grad_s": grad_s,
        "release_s": release_s,
    }


def _entries_on(output: Tensor) -> Row:
    return {"entries_on_value": output.checkpoints().entries}


def _constancy(marks_s: dict[int, float], tenth: int, rounds: int) -> Fact:
    """The mean time of a round in the first tenth and in the last."""
    first_s = marks_s[tenth] / tenth
    last_s = (marks_s[rounds] - marks_s[rounds - tenth]) / tenth
    return Fact(
        "round_s",
        {"first_tenth": first_s, "last_tenth": last_s},
        f"a round takes {units.duration(first_s)} in the first tenth of the rounds, "
        f"{units.duration(last_s)} in the last",
    )


def _released(program: ChainProgram, clock: Clock) -> Fact:
    """Let go of the whole chain; nothing else may hold it."""
    start_s = clock()
    program.release()
    release_s = clock() - start_s
    return Fact(
        "chain_release_s",
        release_s,
        f"letting go of the whole chain takes {units.duration(release_s)}",
    )


def _both_sides(tracer: Tracer) -> Fact:
    """The gradient of x^2 * y^2 by y, with a checkpoint on either square: 24 at 2 and 3."""
    x, y = tracer.tensor([2.0]), tracer.tensor([3.0])
    squares = [x * x, y * y]
    for square in squares:
        square.checkpoint()
    found: Any
    try:
        found = vjp(squares[0] * squares[1], y, tracer.tensor([1.0])).evaluate().item()
        words = f"{found:g}"
    except InactiveOutputError as error:
        found = words = error.message
    return Fact(
        "gradient_by_the_right_operand",
        found,
        f"two operands with checkpoints of their own, gradient by the right one: {words}",
    )


@experiment("chain", "op", "rounds", "merge", "beta")
def open_chain(argument: str, options: WorkloadOptions) -> Experiment:
    """`chain`: the experiment of the options.

    Raises:
        UsageError: an argument after the name, or a beta that the TRG does not take.
    """
    if argument:
        raise UsageError(
            f"workload `chain` takes no argument, got `{argument}`",
            "use --op, --rounds, --merge, --beta",
        )
    rounds = options.rounds
    if rounds is None:
        rounds = USUAL_ROUNDS[options.op]
    if options.op != "trg":
        return ChainExperiment(options.op, rounds, options.merge)
    betas = _betas(options)
    if len(betas) > 1:
        return BetaExperiment(rounds, betas)
    return ChainExperiment(options.op, rounds, options.merge, betas[0])


def _betas(options: WorkloadOptions) -> tuple[float, ...]:
    found = tuple(number(point.options.beta) for point in points(options, {"beta"}))
    for beta in found:
        if not 0.0 < beta <= MOST_BETA:
            raise UsageError(f"--beta is {beta}", f"it has to be above 0 and at most {MOST_BETA:g}")
    return found
