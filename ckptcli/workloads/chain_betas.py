"""The `chain` experiment for several inverse temperatures: the steps are prepared once for all.

A traced `checkpoint` runs at once, so that beta has to be data and every beta needs its graph anew.
Prepared steps (`ckptcli.traced.segments`) take it as a placeholder: nothing is compiled after the
first beta.

Invariant: value and gradient of prepared steps have the bits of the graph that is built anew.

Source: the second seed document, which says that its checkpoints lose "prepare once, reuse for
every beta", and measures prepared steps apart.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ckptcli import units
from ckptcli.backends.base import Backend
from ckptcli.traced import Tracer, grad
from ckptcli.traced.segments import Loop
from ckptcli.workloads.chain_programs import CHI, Trg
from ckptcli.workloads.experiment import Clock, Fact, Findings, Row, Tell
from ckptcli.workloads.ising import exact_values
from ckptcli.workloads.traced_trg import segments
from ckptcli.workloads.trg_tensors import kept_ranks

BYTES_OF_A_STEP = 2000
"""A lower bound: its nodes and instructions."""


@dataclass(frozen=True)
class BetaExperiment:
    """`rounds` steps of the TRG, prepared once and run for each of `betas`."""

    rounds: int
    betas: tuple[float, ...]
    variant = "several --beta"
    unused = frozenset({"merge"})

    @property
    def title(self) -> str:
        betas = ", ".join(f"{beta:g}" for beta in self.betas)
        return f"chain, op = trg, rounds = {self.rounds}, beta = {betas}"

    @property
    def settings(self) -> dict[str, object]:
        return {"name": "chain", "op": "trg", "rounds": self.rounds, "beta": list(self.betas)}

    @property
    def selection(self) -> str:
        return (
            "a row for each beta; replay, residuals: from beta to its value and gradient by "
            "prepared steps, for the first beta with the preparing; anew: the same by a graph that "
            "is built for this beta, with a checkpoint after each step; exact: a torus of up to "
            "2^6 spins, the infinite lattice from 12 steps on"
        )

    @property
    def shrink_hint(self) -> str:
        return "use fewer --rounds"

    def needed_bytes(self) -> int:
        return self.rounds * BYTES_OF_A_STEP

    def measure(self, findings: Findings, backend: Backend, clock: Clock, tell: Tell) -> None:
        """A row for each beta, then what was prepared.

        One pass that is not measured comes first: a library's first calls are slow.
        """
        ways = [_Way(name, backend, self.rounds) for name in ("replay", "residuals")]
        with backend.quiet():
            _anew(backend, self.betas[0], self.rounds)
            for number, beta in enumerate(self.betas, start=1):
                findings.rounds.append(_row(ways, beta, self.rounds, findings.wrong, clock))
                tell(number, len(self.betas))
        findings.facts += [way.fact() for way in ways]
        for way in ways:
            if way.compiled_later:
                findings.wrong.append(
                    f"{way.name}: {units.count(way.compiled_later, 'program')} compiled after the "
                    "first beta, there have to be none"
                )


@dataclass
class _Way:
    """One way to prepare the steps, which happens at its first run."""

    name: str
    backend: Backend
    steps: int
    loop: Loop | None = None
    prepare_s: float = 0.0
    compiled: int = 0

    def run(self, beta: float, clock: Clock) -> tuple[float, float, float]:
        """Value, gradient, and the seconds that they took, the first time with preparing."""
        start_s = clock()
        loop = self.loop or self._prepared(clock)
        state = self.backend.asarray([beta], "float64", copy=True)
        swept = loop.value_and_gradient(state)
        gradient = float(self.backend.to_numpy(swept.gradient).item())
        return swept.value, gradient, clock() - start_s

    def _prepared(self, clock: Clock) -> Loop:
        start_s = clock()
        ranks = kept_ranks(self.steps, CHI)
        keeps = self.name == "residuals"
        loop = self.loop = segments(Tracer(self.backend), ranks, keep_residuals=keeps)
        self.prepare_s = clock() - start_s
        self.compiled = loop.tracer.compiler.compiled
        return loop

    @property
    def compiled_later(self) -> int:
        """Programs compiled after the steps were prepared."""
        return 0 if self.loop is None else self.loop.tracer.compiler.compiled - self.compiled

    def fact(self) -> Fact:
        return Fact(
            f"prepared_{self.name}",
            {
                "programs": self.compiled,
                "programs_later": self.compiled_later,
                "prepare_s": self.prepare_s,
            },
            f"{self.name}: {units.count(self.compiled, 'program')} prepared in "
            f"{units.duration(self.prepare_s)} for the first beta, {self.compiled_later} later",
        )


def _row(ways: Sequence[_Way], beta: float, steps: int, wrong: list[str], clock: Clock) -> Row:
    """One beta; adds to `wrong` what has other bits than the graph that is built anew."""
    found = {way.name: way.run(beta, clock) for way in ways}
    start_s = clock()
    value, gradient = _anew(ways[0].backend, beta, steps)
    anew_s = clock() - start_s
    for name, (its_value, its_gradient, _) in found.items():
        if (its_value, its_gradient) != (value, gradient):
            wrong.append(
                f"beta = {beta:g}, {name}: value {its_value!r} and gradient {its_gradient!r}, "
                f"built anew {value!r} and {gradient!r}"
            )
    exact = exact_values(beta, steps)
    return {
        "beta": beta,
        "value": value,
        "gradient": gradient,
        **{f"{name}_s": taken_s for name, (_, _, taken_s) in found.items()},
        "anew_s": anew_s,
        "exact_value": None if exact is None else exact.loss,
        "exact_gradient": None if exact is None else exact.gradient,
    }


def _anew(backend: Backend, beta: float, steps: int) -> tuple[float, float]:
    """Value and gradient by a graph with a checkpoint after each step."""
    program = Trg(Tracer(backend), True, beta)
    for _ in range(steps):
        program.advance()
    output = program.output()
    gradient = grad(output, program.leaf).evaluate().item()
    return float(output.evaluate().item()), float(gradient)
