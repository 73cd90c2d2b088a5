"""Which checkpoint of a JAX function fits a budget, and what it may save.

Invariant: every peak that a plan names is of a program that was compiled, by the compiler's plan.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from statistics import median
from time import perf_counter
from typing import Any

from ckptcli.errors import CkptError, ProgramError
from ckptcli.measure.row import Row
from ckptcli.measure.saved_list import SavedList
from ckptcli.options.measuring import THRESHOLD
from ckptcli.options.optimizers import states_of
from ckptcli.peers.base import Engine, NoPeer
from ckptcli.peers.function_strategies import function_strategies, parse_function_strategy
from ckptcli.peers.jax_candidates import candidates, sets_left_out
from ckptcli.peers.jax_checkpoint_code import Way, ways
from ckptcli.peers.jax_function import UserFunction, load_function
from ckptcli.peers.jax_function_rows import (
    CompiledFunction,
    FunctionProgram,
    FunctionRows,
    gradient_program,
)
from ckptcli.peers.jax_operations import executed, operations
from ckptcli.peers.jax_saved import function_residuals, names_in
from ckptcli.peers.jax_trial import blamed, tried
from ckptcli.planning.device_limit import DeviceLimit
from ckptcli.planning.functions.plan import FunctionPlan, MeasuredFunction
from ckptcli.planning.functions.search import Candidate, NoSuchProgram, Point, Traced, search
from ckptcli.planning.problems.base import Number
from ckptcli.planning.snippet import Snippet
from ckptcli.profiling.function_profile import profile_function
from ckptcli.profiling.own_program import Tell
from ckptcli.profiling.plan_rounds import plan_rounds
from ckptcli.units import count, size

PASSES = 5
"""So often a program is timed, behind a pass that is not."""

_NAMELESS = re.compile(r" at 0x[0-9a-f]+|policy=[^\n]*|name=[^\n]*")
"""What differs between programs that compute the same."""


@dataclass(frozen=True, slots=True)
class FunctionPlanRequest:
    """What is asked of a function.

    Attributes:
        text: `FILE.py:MAKE`.
        budget: bytes above its arguments; None for the frontier alone, or for what the device
            leaves.
        cost_unit: flops, time or count.
        place: the function whose calls may be under a checkpoint; None for those that are found.
        device_bytes: the memory of the device that all has to fit in; None where a budget says.
        optimizer: whose state is there too, by name; "" for none.
    """

    text: str
    budget: int | None
    cost_unit: str = "flops"
    place: str | None = None
    device_bytes: int | None = None
    optimizer: str = ""


def plan_function(request: FunctionPlanRequest, tell: Tell) -> tuple[FunctionPlan, list[str]]:
    """The plan, and what a reader of it has to know; JAX is imported.

    Raises:
        UsageError: no function with parameters, or no such place in it.
        ProgramError: it fails, has no gradient, or is another each time.
    """
    user = load_function(request.text)
    traced = tried(user)
    rows = FunctionRows(user, traced.program)
    names = sorted(names_in(traced.program.jaxpr))
    known = candidates(user, traced.program, rows.has_checkpoints, request.place)
    planning = _Planning(request, user, rows)
    found = search(known, planning.traced, planning.compiled, tell)
    limit = planning.limit()
    budget = request.budget if limit is None else limit.budget_bytes
    plan = FunctionPlan(
        title=user.title,
        budget=budget,
        base_bytes=planning.base_bytes,
        cost_unit=request.cost_unit,
        whole_cost=planning.whole_cost(),
        found=found,
        best=found.best(budget),
        names=names,
        limit=limit,
    )
    if plan.best is not None and plan.has_checkpoints:
        plan = replace(plan, snippets=planning.snippets(plan.best, budget))
    return plan, [*traced.notes, *_doubts(rows, names)]


def _doubts(rows: FunctionRows, names: Sequence[str]) -> Iterator[str]:
    if rows.has_checkpoints:
        yield (
            f"`{rows.user.text}` has checkpoints of its own, which are off in all but `own`: take "
            "them out where the plan's is pasted"
        )
    left_out = sets_left_out(names)
    if left_out:
        yield f"of the sets of {count(len(names), 'name')} {left_out} were not looked at"


class _Planning:
    """A function that was tried, on the way to its plan.

    Attributes:
        base_bytes: its arguments, once something was compiled.
    """

    def __init__(
        self, request: FunctionPlanRequest, user: UserFunction, rows: FunctionRows
    ) -> None:
        self._request, self._user, self._rows = request, user, rows
        self._parameters, self._arrays = user.parameter_leaves(), user.other_arrays()
        self._plain = self._counted(gradient_program(rows.without, self._parameters, self._arrays))
        self._plain_s: float | None = None
        self.base_bytes = 0

    def _counted(self, closed: Any) -> int:
        """Operations of a program, or how many primitives run."""
        if self._request.cost_unit == "count":
            return sum(times for _, times in executed(closed.jaxpr))
        return operations(closed.jaxpr)

    def whole_cost(self) -> Number:
        """Of the forward pass; in time, of both passes."""
        if self._request.cost_unit == "time":
            return self._plain_s or 0.0
        return self._counted(self._rows.program_of(self._rows.without))

    def traced(self, candidate: Candidate) -> Traced:
        """What a candidate asks for.

        Raises:
            NoSuchProgram: it is nothing here, or fails.
        """
        with _nothing_here():
            return self._traced(candidate, self._program(candidate))

    def _program(self, candidate: Candidate) -> FunctionProgram:
        return self._rows.program(parse_function_strategy(candidate.strategy))

    def _traced(self, candidate: Candidate, program: FunctionProgram) -> Traced:
        with blamed(self._user.text):
            held = SavedList(candidate.strategy, function_residuals(program))
            gradient = gradient_program(program.loss, self._parameters, self._arrays)
        again = max(0, self._counted(gradient) - self._plain)
        words = hash(_NAMELESS.sub("", str(gradient.jaxpr)))
        return Traced(candidate, held.saved_bytes, again, words)

    def compiled(self, traced: Traced) -> Point:
        """What a candidate takes.

        Raises:
            NoSuchProgram: it does not compile, or the compiler has no plan.
        """
        with _nothing_here():
            return self._point(traced, self._program(traced.candidate))

    def _point(self, traced: Traced, program: FunctionProgram) -> Point:
        with blamed(self._user.text):
            network = CompiledFunction(program)
            cost = traced.again
            if self._request.cost_unit == "time":
                cost = self._more_time(network)
        if network.plan is None:
            raise NoSuchProgram("this version of JAX does not tell what a program takes")
        self.base_bytes = self.base_bytes or network.plan.argument_bytes
        peak_bytes = network.plan.whole_bytes - network.plan.argument_bytes
        return Point(traced.candidate, peak_bytes, traced.held_bytes, cost)

    def _more_time(self, network: CompiledFunction) -> float:
        """Seconds more than without checkpoints, which is the first that is asked."""
        network.forward()
        taken = []
        for _ in range(PASSES):
            start_s = perf_counter()
            network.forward()
            taken.append(perf_counter() - start_s)
        if self._plain_s is None:
            self._plain_s = median(taken)
        return max(0.0, median(taken) - self._plain_s)

    def limit(self) -> DeviceLimit | None:
        """The device with the arguments on it."""
        if self._request.device_bytes is None:
            return None
        parameters_bytes = sum(int(leaf.nbytes) for leaf in self._parameters)
        name = self._request.optimizer
        return DeviceLimit(
            self._request.device_bytes,
            self.base_bytes,
            "parameters and batch",
            name,
            states_of(name) * parameters_bytes,
        )

    def snippets(self, best: Point, budget: int | None) -> list[Snippet]:
        """The first way to write it that fits as it was run."""
        for way in ways(self._user, best.candidate):
            made = self._pasted(way, best)
            if made is not None and (budget is None or made.peak_bytes <= budget):
                return [_told(way.snippet, made, best)]
        return []

    def _pasted(self, way: Way, best: Point) -> Point | None:
        """What the function takes with the code in it; None where it fails."""
        try:
            with _nothing_here():
                user = way.load()
                program = FunctionProgram(user, user.scalar, self._rows.tolerance, user.scalar)
                return self._point(self._traced(best.candidate, program), program)
        except NoSuchProgram:
            return None


def _told(snippet: Snippet, made: Point, best: Point) -> Snippet:
    """With what it takes, where that is something else."""
    if (made.peak_bytes, made.held_bytes) == (best.peak_bytes, best.held_bytes):
        return snippet
    peak, held = size(made.peak_bytes), size(made.held_bytes)
    return replace(snippet, way=f"{snippet.way} (as pasted: peak {peak}, residuals {held})")


@contextmanager
def _nothing_here() -> Iterator[None]:
    """Inside, what fails is no program.

    Raises:
        NoSuchProgram: something failed.
    """
    try:
        yield
    except (NoPeer, CkptError) as error:
        raise NoSuchProgram(str(error)) from error


def measured_plan(
    request: FunctionPlanRequest, plan: FunctionPlan, engine: Engine, tell: Tell
) -> FunctionPlan:
    """The plan with what its checkpoint takes beside `none`, in rounds; of none unchanged.

    Raises:
        ProgramError: the function fails.
    """
    if plan.best is None:
        return plan
    strategies = function_strategies([plan.best.candidate.strategy])
    rounds = plan_rounds(seed=0)
    record = profile_function(request.text, strategies, [engine], rounds, THRESHOLD, tell)
    return replace(plan, measured=_measured(record.rows[-1], record.rows[0], plan.budget))


def _measured(row: Row, none: Row, budget: int | None) -> MeasuredFunction:
    compiled, agreement = row.compiled, row.agreement
    if compiled is None or compiled.plan is None or agreement is None:
        raise ProgramError(f"{row.name} could not be measured: {row.reason}")
    peak_bytes = compiled.plan.whole_bytes - compiled.plan.argument_bytes
    return MeasuredFunction(
        peak_bytes=peak_bytes,
        process_bytes=compiled.fresh_process_bytes,
        time_s=row.median_s("total") or 0.0,
        none_time_s=none.median_s("total"),
        within_budget=budget is None or peak_bytes <= budget,
        gradients_equal=agreement.agrees,
        gradient_relative=agreement.gradient_relative,
    )
