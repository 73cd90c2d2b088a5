"""What the figures of a row say, where two of them seem to contradict each other."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ckptcli.measure.judge import judge
from ckptcli.measure.row import Agreement
from ckptcli.report.readings import answer, readings
from ckptcli.report.run_table import gradients_word
from tests.records import balanced_record, none_record, run_record

QUIET, DISTURBED = 0.010, 0.030


def told(none_s: list[float], balanced_s: list[float]) -> tuple[str, str]:
    """The answer on `balanced`, and all that is said below the table."""
    record = run_record(none_record(none_s), balanced_record(balanced_s))
    row = record.rows[1]
    return answer(row, record), " ".join(readings(row, record))


def test_a_ratio_that_the_medians_contradict_says_which_of_both_it_is() -> None:
    """A busy machine: but for one round, both are slow together."""
    none_s = [DISTURBED] * 5 + [QUIET] * 4
    balanced_s = [1.1 * DISTURBED] * 4 + [1.1 * QUIET] * 5
    head, below = told(none_s, balanced_s)
    assert "takes 1.10x the time round by round (slower)" in head
    assert "the two medians make 0.37x" in below


def test_a_ratio_that_the_medians_confirm_says_nothing_more() -> None:
    head, below = told([QUIET] * 9, [1.1 * QUIET] * 9)
    assert "takes 1.10x the time (slower)" in head
    assert "medians" not in below


def test_a_peak_in_forward_has_both_figures_of_each_kind_in_one_order() -> None:
    record = run_record(none_record([QUIET] * 9))
    row = record.rows[0]
    assert row.memory is not None
    assert row.memory.peak_live is not None
    live = replace(row.memory.peak_live, module="layers.0", phase="forward", total_bytes=7 << 20)
    memory = replace(
        row.memory,
        peak_live=live,
        traced_peak_forward_bytes=80 << 20,
        traced_peak_backward_bytes=50 << 20,
    )
    told = " ".join(readings(replace(row, memory=memory), record))
    assert "at most 7.0 MiB live in the forward of `layers.0`" in told
    assert "with the workspace of kernels 80.0 MiB and 50.0 MiB" in told


@pytest.mark.parametrize(("share", "is_told"), [(0.9, True), (0.1, False)])
def test_blocks_that_spare_little_of_what_is_held_are_too_small(
    share: float, is_told: bool
) -> None:
    """As the layers of a U-Net, one by one."""
    record = replace(run_record(none_record([QUIET] * 9)), children=("0", "1"))
    base = record.rows[0]
    assert base.memory is not None
    spared = int(base.memory.saved_bytes * (1 - share))
    memory = replace(
        base.memory,
        saved_bytes=base.memory.saved_bytes - spared,
        after_forward_bytes=(base.memory.after_forward_bytes or 0) - spared,
    )
    told = judge(replace(base, memory=memory), base, record)
    assert told is not None
    assert told.word == "held only"
    assert ("checkpoint larger blocks" in told.reason) is is_told


@pytest.mark.parametrize(
    ("loss", "gradient", "word"),
    [
        (0.0, 0.0, "identical"),
        (1e-8, 0.0, "identical"),
        (0.0, 1e-8, "within 1e-08"),
        (0.1, 0.0, "DIFFER"),
    ],
)
def test_gradients_are_identical_where_the_loss_alone_is_rounded_otherwise(
    loss: float, gradient: float, word: str
) -> None:
    row = run_record(none_record([QUIET] * 9)).rows[0]
    agreement = Agreement(1.0, loss, 0.0, gradient, 0.0, 1e-5, "none")
    assert gradients_word(replace(row, agreement=agreement), row) == word
