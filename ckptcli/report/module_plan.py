"""A plan for a module's blocks, for the eye: the answer, blocks, the frontier, code to paste."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from rich.table import Table
from rich.text import Text

from ckptcli import units
from ckptcli.planning.blocks.plan import THINNED, Block, ModulePlan
from ckptcli.planning.blocks.sets import SetPass
from ckptcli.planning.problems.base import Number
from ckptcli.planning.snippet import Snippet
from ckptcli.report import cells
from ckptcli.report.cells import Cell, Column
from ckptcli.report.charts import during
from ckptcli.report.model_answer import SPARED, answer_sentences
from ckptcli.report.plan_limit import fits_word, limit_sentence
from ckptcli.report.screen import Screen

BLOCKS = (
    Column("block", 0, "text", folds_to=12),
    Column("holds", 1),
    Column("frees", 1),
    Column("forward", 2),
    Column("time", 3),
    Column("peak alone", 2),
    Column("", 4, "text"),
)
SETS = (
    Column("set", 0, "text", folds_to=16),
    Column("peak", 1),
    Column("holds", 3),
    Column("again", 2),
    Column("", 4, "text"),
)
BEFORE = ("parameter", "buffer", "input", "optimizer")
AT_THE_PEAK = 5
"""Kinds of what is live there that are named."""

_COSTS = {
    "flops": "of the forward's operations once more, by PyTorch's counter",
    "time": "of the forward's time once more",
    "count": "of the blocks once more",
}


def render_module_plan(plan: ModulePlan, screen: Screen) -> str:
    """The whole screen, ready to print."""
    parts: list[str | Text | Table] = [screen.wrapped(line) for line in _sentences(plan)]
    parts += ["", screen.draw(_blocks(plan)), "", screen.draw(_frontier(plan))]
    for snippet in plan.snippets:
        parts += ["", *_code(snippet)]
    return screen.render(*parts)


def _code(snippet: Snippet) -> Iterator[str]:
    """As it is, so that it can be pasted."""
    yield f"# {snippet.way}"
    yield from snippet.code.rstrip("\n").split("\n")


def _sentences(plan: ModulePlan) -> Iterator[str]:
    yield from _answer(plan)
    yield (
        f"a budget covers all that a step adds above {units.size(plan.base_bytes)} of parameters, "
        "buffers, input and the optimizer's state: what is saved, gradients, temporaries, "
        f"{_kernels(plan)}{_as_run_counts(plan)}"
    )
    if plan.limit is not None:
        yield limit_sentence(plan.limit)
    if plan.predicted:
        yield (
            f"{units.count(plan.passes, 'set')} of blocks measured; {plan.predicted} of the peaks "
            f"were predicted from what each block frees, {plan.as_predicted} of these to the byte"
        )
    if plan.thinned:
        yield THINNED
    yield from _floor(plan)
    yield from _refused(plan)
    yield from _other_blocks(plan)
    if plan.best is not None and plan.best.chosen and not plan.snippets:
        yield "no code to paste: none that was tried takes on this module what was planned"
    if plan.measured is not None:
        yield _measured(plan)


def _kernels(plan: ModulePlan) -> str:
    """What of a peak kernels take for themselves."""
    if plan.is_fake:
        return "but not what kernels take for themselves, which shapes do not tell"
    shown = plan.best or plan.lowest
    return (
        f"and {units.size(shown.workspace_bytes)} that kernels and checkpoints take beside tensors"
    )


def _refused(plan: ModulePlan) -> Iterator[str]:
    """Blocks that cannot be under a checkpoint, by their reason."""
    by_reason: dict[str, list[str]] = {}
    for block in plan.blocks:
        if block.refused:
            by_reason.setdefault(block.refused, []).append(block.name)
    for reason, names in by_reason.items():
        more = f" and {units.count(len(names) - 1, 'more block')}" if len(names) > 1 else ""
        yield f"block `{names[0]}`{more} cannot be under a checkpoint: {reason}"


def _other_blocks(plan: ModulePlan) -> Iterator[str]:
    """Where these blocks spare too little: what would be tried next."""
    none, lowest = plan.none.peak_bytes, plan.lowest
    is_spared = lowest.peak_bytes <= (1 - SPARED) * none
    if plan.feasible and (plan.budget is not None or is_spared):
        return
    if all(block.refused for block in plan.blocks):
        return
    parts = ".".join([*re.sub(r"\d+", "*", plan.blocks[0].paths[0]).split("."), "*"]).lstrip(".")
    yield (
        f"of these {units.size(lowest.held_bytes)} are held from forward to backward, between "
        "blocks and by those without a checkpoint: name other blocks with --blocks, by class or "
        f"path (`--blocks '{parts}'` are parts of these); larger ones have less between them, of "
        "smaller ones less is there at once when they are computed again"
    )


def _as_run_counts(plan: ModulePlan) -> str:
    """The peak that `ckpt run` says, whose account has what is there before too."""
    if plan.best is None:
        return ""
    whole = plan.base_bytes + plan.best.peak_bytes
    return f"; `ckpt run` counts what is there before too: {units.size(whole)}"


def _answer(plan: ModulePlan) -> Iterator[str]:
    how, best = "", plan.best
    if best is not None and best.chosen:
        how = f"{plan.strategy}, {_share(plan, plan.cost(best))} {_COSTS[plan.cost_unit]}"
    return answer_sentences(plan, "set of blocks", how)


def _floor(plan: ModulePlan) -> Iterator[str]:
    """The least peak, and what of it no checkpoint takes away."""
    lowest = plan.lowest
    largest = sorted(lowest.bytes_by_why.items(), key=lambda of: -of[1])
    there = [(why, size) for why, size in largest if why not in BEFORE]
    shown = ", ".join(f"{units.size(size)} {why}" for why, size in there[:AT_THE_PEAK])
    where = during(lowest.phase, lowest.module)
    yield (
        f"no set that was measured takes less than {units.size(lowest.peak_bytes)} "
        f"({plan.strategies[lowest.chosen]}): {where} there are {shown}"
    )


def _measured(plan: ModulePlan) -> str:
    measured, best = plan.measured, plan.best
    assert measured is not None
    assert best is not None
    same = "as planned" if measured.ledger_bytes == best.ledger_bytes else "NOT as planned"
    scratch = measured.peak_bytes - measured.ledger_bytes
    beside = ""
    if measured.none_time_s:
        again = _share(plan, plan.cost(best))
        ratio = measured.time_s / measured.none_time_s
        beside = f", {ratio:.2f} times none's with {again} of the forward once more"
    equal = "identical" if measured.gradients_equal else "DIFFER"
    return (
        f"measured: peak {units.exact_size(measured.peak_bytes)}, of which "
        f"{units.size(scratch)} beside tensors, whose peak is {same}; "
        f"{units.duration(measured.time_s)}"
        f"{beside}; gradients {equal}"
    )


def _share(plan: ModulePlan, cost: Number) -> str:
    return _percent(cost, plan.whole_cost)


def _percent(cost: Number, whole: Number) -> str:
    return units.percent(cost / whole) if whole else units.UNKNOWN


def _blocks(plan: ModulePlan) -> cells.Table:
    whole = sum(block.flops for block in plan.blocks) if plan.cost_unit != "flops" else 0
    flops = plan.whole_cost if plan.cost_unit == "flops" else whole
    chosen = frozenset() if plan.best is None else plan.best.chosen
    rows = [
        [Cell(text) for text in _block(plan, block, flops, place in chosen)]
        for place, block in enumerate(plan.blocks)
    ]
    if any(block.time_s is not None for block in plan.blocks):
        return cells.Table(BLOCKS, rows)
    shown = [place for place, column in enumerate(BLOCKS) if column.name != "time"]
    return cells.Table(
        [BLOCKS[place] for place in shown], [[row[place] for place in shown] for row in rows]
    )


def _block(plan: ModulePlan, block: Block, flops: Number, is_chosen: bool) -> Sequence[str]:
    word = "refused" if block.refused else "checkpoint" if is_chosen else ""
    alone = units.UNKNOWN
    if block.peak_bytes is not None:
        alone = units.change(block.peak_bytes, plan.none.peak_bytes)
    return (
        block.name,
        units.size(block.holds_bytes),
        units.size(block.frees_bytes),
        _percent(block.flops, flops),
        units.UNKNOWN if block.time_s is None else units.duration(block.time_s),
        alone,
        word,
    )


def _frontier(plan: ModulePlan) -> cells.Table:
    """Sets that no other one beats, none first."""
    rows = [[Cell(text) for text in _point(plan, point)] for point in plan.frontier]
    return cells.Table(SETS, rows)


def _point(plan: ModulePlan, point: SetPass) -> Sequence[str]:
    return (
        plan.strategies[point.chosen],
        units.size(point.peak_bytes),
        units.size(point.held_bytes),
        _share(plan, plan.cost(point)),
        fits_word(point.peak_bytes, plan.budget),
    )
