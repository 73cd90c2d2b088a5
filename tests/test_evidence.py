"""Whose fault a wrong gradient is: from hand-made rows, every way that the evidence can stand."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from ckptcli.measure.evidence import UNDECIDED, disagreement
from ckptcli.measure.memory import held_alone
from ckptcli.measure.record import RunRecord
from ckptcli.measure.record_json import read_record, record_json
from ckptcli.measure.row import Agreement, Outcome, Row
from ckptcli.report.console import render_run
from ckptcli.report.gradient_table import gradient_table
from ckptcli.report.screen import Screen
from tests.records import engine_row, none_record, run_record

RIGHT, EXACT, DIFFERENCE, WRONG = 0.7124, 0.71240001, 0.712400000001, 0.7125
TOLERANCE = 1e-12


def beside(gradient: float, expected: float, whose: str = "ckpt") -> Agreement:
    apart = abs(gradient - expected) / abs(expected)
    return Agreement(1.0, 0.0, 0.0, apart, apart / 1e-16, TOLERANCE, whose)


def outcome(gradient: float, exact: float | None, difference: float | None) -> Outcome:
    theory = None if exact is None else (1.0, exact)
    return Outcome(1.0, gradient, None, {}, False, gradient, theory, difference)


def run(
    own: float,
    plain: float | None,
    found: float,
    exact: float | None = EXACT,
    difference: float | None = DIFFERENCE,
) -> RunRecord:
    """ckpt's `none`, JAX's if there is one, and JAX's `remat`, with these gradients."""
    ours = replace(none_record(), outcome=outcome(own, exact, difference))
    rows = [ours]
    if plain is not None:
        rows.append(jax("none", own, plain, None, exact, difference))
    rows.append(jax("remat", own, found, plain, exact, difference))
    return run_record(*rows)


def jax(
    strategy: str,
    own: float,
    found: float,
    plain: float | None,
    exact: float | None,
    difference: float | None,
) -> Row:
    return engine_row(
        "jax",
        strategy,
        memory=held_alone(4096, 2),
        outcome=outcome(found, exact, difference),
        agreement=beside(found, own),
        plain_agreement=None if plain is None else beside(found, plain, "jax none"),
    )


def reason(record: RunRecord) -> str:
    judgement = record.rows[-1].judgement
    assert judgement is not None
    assert judgement.word == "wrong"
    text = disagreement(record.rows[-1], record)
    assert text is not None
    said, _, why = judgement.reason.partition(": ")
    assert said == "loss or gradients differ from ckpt's"
    assert text.endswith(why)
    assert text.startswith("jax remat: differs from ckpt by 0 in the loss and ")
    return why


CHANGED = "the checkpoint changed it: `jax none` agrees with"


@pytest.mark.parametrize(
    ("record", "expected"),
    [
        (
            run(RIGHT, RIGHT, WRONG),
            f"{CHANGED} ckpt, the exact value and the finite difference",
        ),
        (run(RIGHT, RIGHT, math.nan), f"{CHANGED} ckpt, the exact value and the finite difference"),
        # A program that truncates is as far from theory as the fault is: it takes no side.
        (run(RIGHT, RIGHT, WRONG, exact=0.71245), f"{CHANGED} ckpt and the finite difference"),
        (run(RIGHT, RIGHT, WRONG, None, None), f"{CHANGED} ckpt"),
        (
            run(RIGHT, WRONG, WRONG),
            "not by the checkpoint, as `jax none` differs as much; the exact value and the finite "
            "difference stand with ckpt",
        ),
        (
            run(WRONG, RIGHT, RIGHT),
            "not by the checkpoint, as `jax none` differs as much; the exact value and the finite "
            "difference stand with `jax remat`, so that ckpt is wrong",
        ),
        (
            run(RIGHT, 0.7126, WRONG),
            "the checkpoint changed it, and `jax none` differs from ckpt as well; the exact value "
            "and the finite difference stand with ckpt",
        ),
        (
            run(RIGHT, WRONG, WRONG, None, None),
            f"not by the checkpoint, as `jax none` differs as much; {UNDECIDED}",
        ),
        (run(RIGHT, None, WRONG, None), "the finite difference stands with ckpt"),
        (run(RIGHT, None, WRONG, None, None), UNDECIDED),
    ],
)
def test_the_reason_follows_from_who_stands_with_whom(record: RunRecord, expected: str) -> None:
    assert reason(record) == expected


def test_what_agrees_has_no_reason() -> None:
    record = run(RIGHT, RIGHT, RIGHT)
    assert [disagreement(row, record) for row in record.rows] == [None] * 3
    assert not any(row.is_wrong for row in record.rows)


def test_the_table_has_the_distances_and_the_verdict() -> None:
    table = gradient_table(run(RIGHT, RIGHT, WRONG))
    assert table is not None
    cells = {
        row[0].text: dict(zip(table.header, (cell.text for cell in row))) for row in table.rows
    }
    assert cells["jax remat"]["gradient"] == "0.712500000000000"
    assert cells["jax remat"]["error"] == "+1.0e-04"
    assert cells["jax remat"]["|grad - fd|"] == "1.0e-04"
    assert cells["jax remat"]["|grad - none|"] == "1.0e-04"
    assert cells["jax none"]["|grad - none|"] == "n/a"
    assert [cells[name]["gradient is"] for name in cells] == ["agrees", "agrees", "wrong"]


def test_a_reference_that_the_finite_difference_denies_differs() -> None:
    table = gradient_table(run(WRONG, RIGHT, RIGHT))
    assert table is not None
    assert [row[-1].text for row in table.rows] == ["differs", "wrong", "wrong"]


def test_the_screen_says_that_the_checkpoint_changed_it() -> None:
    text = " ".join(render_run(run(RIGHT, RIGHT, WRONG), Screen(100)).split())
    assert f"wrong: loss or gradients differ from ckpt's: {CHANGED}" in text


def test_the_evidence_is_read_back() -> None:
    record = run(RIGHT, RIGHT, WRONG)
    assert read_record(record_json(record), "text") == record
