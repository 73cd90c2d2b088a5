"""`--fail-on`: conditions on a run that make the command end with exit code 3.

    [STRATEGY.]METRIC OP VALUE[%]

A condition on a time fires only when the near end of the 95 % interval crosses the value, so that
noise does not fail a build; a condition on an exact figure fires on the figure. With `%` the change
against the reference (or base) is compared, without it the value in seconds (`2ms`), bytes
(`64KiB`, `64KB`) or nodes.

Source: issues of criterion.rs (824), pytest-benchmark (219) and asv (550) on gates that fail on
noise, or never.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from ckptcli import units
from ckptcli.errors import UnknownNameError, UsageError
from ckptcli.measure.point import Point, beside_point
from ckptcli.measure.row import Row
from ckptcli.measure.statistics import Ratio

TIMES = {"time": "total", "forward": "forward", "backward": "backward", "step": "step"}
EXACT: dict[str, Callable[[Row], float | None]] = {
    "saved_bytes": lambda row: row.saved_bytes,
    "peak_bytes": lambda row: row.peak_bytes,
    "ledger_peak_bytes": lambda row: None if row.memory is None else row.memory.ledger_peak_bytes,
    "recomputed": lambda row: row.recomputed_nodes,
}
OPERATORS: dict[str, Callable[[float, float], bool]] = {
    ">": operator.gt,
    ">=": operator.ge,
    "<": operator.lt,
    "<=": operator.le,
}

_FORM = re.compile(r"(?:(?P<strategy>.+)\.)?(?P<metric>\w+)\s*(?P<op>[<>]=?)\s*(?P<value>.+)")
_EXAMPLE = "write it as `time > 10%`, `balanced.peak_bytes > 64MiB` or `recomputed > 20`"


@dataclass(frozen=True, slots=True)
class Condition:
    """One parsed condition. `strategy` None stands for any strategy but the reference."""

    text: str
    strategy: str | None
    metric: str
    comparison: str
    value: float
    percent: bool

    def holds(self, figure: float) -> bool:
        """Whether `figure` is on the failing side of the value."""
        return OPERATORS[self.comparison](figure, self.value)


@dataclass(frozen=True, slots=True)
class Subject:
    """One row that conditions look at, and what it is compared with.

    Attributes:
        name: how a condition calls it: rows of several programs have one name.
        point: which of several programs it is of.
    """

    name: str
    own: Row
    base: Row | None
    ratios: dict[str, Ratio] | None
    is_reference: bool
    point: Point = field(default_factory=dict)


def parse_condition(text: str) -> Condition:
    """The condition in `text`.

    Raises:
        UsageError: not of the form, or a value that is no number.
        UnknownNameError: no such metric.
    """
    match = _FORM.fullmatch(text.strip())
    if match is None:
        raise UsageError(f"`--fail-on {text}` is not a condition", _EXAMPLE)
    metric, value_text = match["metric"], match["value"].strip()
    if metric not in TIMES and metric not in EXACT:
        raise UnknownNameError("metric", metric, [*TIMES, *EXACT])
    percent = value_text.endswith("%")
    try:
        value = float(value_text[:-1]) if percent else _value(metric, value_text)
    except ValueError:
        raise UsageError(
            f"`--fail-on {text}`: `{value_text}` is not a value", _taken(metric)
        ) from None
    return Condition(text.strip(), match["strategy"], metric, match["op"], value, percent)


def check_applies(condition: Condition, names: Sequence[str], has_reference: bool) -> None:
    """Refuse a condition that can never be looked at, before anything is measured.

    Raises:
        UnknownNameError: it names a strategy that is not among `names`.
        UsageError: it asks for a change where there is nothing to compare with.
    """
    if condition.strategy is not None and condition.strategy not in names:
        raise UnknownNameError("strategy in --fail-on", condition.strategy, names)
    if condition.percent and not has_reference:
        raise UsageError(
            f"`--fail-on {condition.text}` asks for a change, but there is no reference",
            "run `none` too, or leave out the %",
        )


def fired(condition: Condition, subjects: Sequence[Subject]) -> list[str]:
    """A sentence for each subject on which the condition fires.

    Raises:
        UnknownNameError: the condition names a strategy that is not among the subjects.
        UsageError: a change is asked for where there is nothing to compare with.
    """
    has_base = any(subject.base is not None for subject in subjects)
    check_applies(condition, [subject.name for subject in subjects], has_base)
    chosen = [
        subject
        for subject in subjects
        if (condition.strategy or subject.name) == subject.name
        and not (condition.strategy is None and subject.is_reference and len(subjects) > 1)
    ]
    sentences = []
    for subject in chosen:
        figure = _near_end(condition, subject)
        if figure is not None and condition.holds(figure):
            shown = f"{figure:+.1f} %" if condition.percent else f"{figure:g}"
            sentences.append(
                f"{beside_point(subject.point, subject.name)}: `{condition.text}` holds, at {shown}"
            )
    return sentences


def _value(metric: str, text: str) -> float:
    """Bytes and seconds take a unit; nodes are a plain number."""
    if metric in TIMES:
        return units.parse_duration(text)
    return units.parse_size(text) if metric.endswith("_bytes") else float(text)


def _taken(metric: str) -> str:
    """What stands for a value of the metric."""
    if metric in TIMES:
        return f"a time is in seconds, or ends with {' '.join(units.DURATION_UNITS)}; or with %"
    if metric.endswith("_bytes"):
        return f"a size is in bytes, or ends with {' '.join(units.SIZE_UNITS)}; or with %"
    return f"{metric} is a number of nodes, or ends with %"


def _near_end(condition: Condition, subject: Subject) -> float | None:
    """The figure to compare: of an interval the end that is nearer to not firing."""
    if condition.metric in TIMES:
        return _near_end_of_time(condition, subject)
    figure = EXACT[condition.metric](subject.own)
    if not condition.percent or figure is None:
        return figure
    before = None if subject.base is None else EXACT[condition.metric](subject.base)
    if before is None:
        return None
    if before == 0.0:
        return 0.0 if figure == 0.0 else float("inf")
    return (figure / before - 1.0) * 100.0


def _near_end_of_time(condition: Condition, subject: Subject) -> float | None:
    rises = condition.comparison.startswith(">")
    phase = TIMES[condition.metric]
    if condition.percent:
        ratio = None if subject.ratios is None else subject.ratios.get(phase)
        if ratio is None or not ratio.exact:
            return None
        return ((ratio.low if rises else ratio.high) - 1.0) * 100.0
    times = subject.own.estimate(phase)
    return None if times is None else (times.low if rises else times.high)
