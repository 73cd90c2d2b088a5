"""A plan for a JAX function, for the eye: the answer, what was compiled, code to paste."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.table import Table
from rich.text import Text

from ckptcli import units
from ckptcli.planning.functions.plan import FunctionPlan, MeasuredFunction
from ckptcli.planning.functions.search import Point
from ckptcli.planning.problems.base import Number
from ckptcli.report import cells
from ckptcli.report.cells import Cell, Column
from ckptcli.report.model_answer import SPARED, answer_sentences
from ckptcli.report.plan_limit import fits_word, limit_sentence
from ckptcli.report.screen import Screen

COLUMNS = (
    Column("strategy", 0, "text", folds_to=24),
    Column("peak", 1),
    Column("residuals", 3),
    Column("again", 2),
    Column("", 4, "text"),
)
_COSTS = {
    "flops": "of the forward's operations once more",
    "time": "of the time without checkpoints once more",
    "count": "of the forward's primitives once more",
}


def render_function_plan(plan: FunctionPlan, screen: Screen) -> str:
    """The whole screen, ready to print."""
    parts: list[str | Text | Table] = [screen.wrapped(line) for line in _sentences(plan)]
    parts += ["", screen.draw(_table(plan))]
    for snippet in plan.snippets:
        parts += ["", f"# {snippet.way}", *snippet.code.rstrip("\n").split("\n")]
    return screen.render(*parts)


def _sentences(plan: FunctionPlan) -> Iterator[str]:
    yield from _answer(plan)
    yield (
        f"a budget covers all that the compiled program takes above {units.size(plan.base_bytes)} "
        "of parameters and batch: gradients and XLA's plan for temporaries; memory inside a "
        "library's kernels is not in it"
    )
    if plan.limit is not None:
        yield limit_sentence(plan.limit)
    yield from _looked_at(plan)
    yield from _kept(plan)
    if plan.has_checkpoints and not plan.snippets and not plan.is_own:
        yield "no code to paste: none that was tried takes on this function what was planned"
    if plan.measured is not None:
        yield _measured(plan, plan.measured)


def _answer(plan: FunctionPlan) -> Iterator[str]:
    how, best = "", plan.best
    if best is not None and plan.has_checkpoints:
        how = f"{best.candidate.strategy}, {_share(plan, best.cost)} {_COSTS[plan.cost_unit]}"
    return answer_sentences(plan, "checkpoint", how)


def _looked_at(plan: FunctionPlan) -> Iterator[str]:
    found = plan.found
    named = "no value of it has a name, which jax.ad_checkpoint.checkpoint_name gives"
    if plan.names:
        named = f"its values are called {', '.join(plan.names)}"
    left = f", {found.passed_over} more could be" if found.passed_over else ""
    yield (
        f"{units.count(found.traced, 'candidate')} traced, {len(found.points)} of them compiled"
        f"{left}; {named}"
    )


def _kept(plan: FunctionPlan) -> Iterator[str]:
    """The least peak, and that residuals fall where it does not."""
    none, lowest = plan.found.none, plan.found.lowest
    yield (
        f"no program that was compiled takes less than {units.size(lowest.peak_bytes)} "
        f"({lowest.candidate.strategy})"
    )
    held = min(point.held_bytes for point in plan.found.points)
    if lowest.peak_bytes > (1 - SPARED) * none.peak_bytes and 2 * held < none.held_bytes:
        yield (
            f"residuals fall from {units.size(none.held_bytes)} to {units.size(held)}, and XLA's "
            "plan does not: it merges what is computed again with the forward pass, or orders it "
            "early; layers as turns of one jax.lax.scan, the checkpoint on its body, prevent both"
        )


def _measured(plan: FunctionPlan, measured: MeasuredFunction) -> str:
    best = plan.best
    assert best is not None
    same = "as planned" if measured.peak_bytes == best.peak_bytes else "NOT as planned"
    process = ""
    if measured.process_bytes is not None:
        process = f"; a fresh process grew by {units.size(measured.process_bytes)}"
    beside = ""
    if measured.none_time_s:
        beside = f", {measured.time_s / measured.none_time_s:.2f} times none's"
    equal = "none's but for rounding"
    if not measured.gradients_equal:
        equal = f"off by {measured.gradient_relative:.2g}, see `ckpt check --function`"
    return (
        f"measured: peak {units.exact_size(measured.peak_bytes)}, {same}"
        f"{process}; {units.duration(measured.time_s)}{beside}; gradients are {equal}"
    )


def _share(plan: FunctionPlan, cost: Number) -> str:
    return units.percent(cost / plan.whole_cost) if plan.whole_cost else units.UNKNOWN


def _table(plan: FunctionPlan) -> cells.Table:
    """What no other one beats, cheap ones first, then the rest."""
    frontier = plan.found.frontier()
    rest = [point for point in plan.found.points if point not in frontier]
    rows = [[Cell(text) for text in _row(plan, point, "")] for point in frontier]
    rows += [[Cell(text) for text in _row(plan, point, "beaten")] for point in rest]
    return cells.Table(COLUMNS, rows)


def _row(plan: FunctionPlan, point: Point, word: str) -> Sequence[str]:
    fits = fits_word(point.peak_bytes, plan.budget)
    return (
        point.candidate.strategy,
        units.size(point.peak_bytes),
        units.size(point.held_bytes),
        _share(plan, point.cost),
        ", ".join(filter(None, (fits, word))),
    )
