"""Tables on narrow screens: whole columns go, the least important first; nothing is shortened."""

from __future__ import annotations

import pytest
from rich.cells import cell_len

from ckptcli.report.cells import Cell, Column, Table
from ckptcli.report.fitting import fitted
from ckptcli.report.screen import Screen

TABLE = Table(
    (
        Column("name", 0, "text"),
        Column("first", 1),
        Column("second", 2),
        Column("a long head", 3, short="head"),
        Column("word", 4, "word"),
    ),
    [
        (
            Cell("alpha"),
            Cell("1.0 MiB", "of 2.0"),
            Cell("22.22ms", "[1 2]"),
            Cell("3"),
            Cell("same"),
        ),
        (Cell("beta"), Cell("n/a"), Cell("4.44ms"), Cell("55"), Cell("n/a")),
    ],
)


@pytest.mark.parametrize("width", range(5, 80))
def test_it_fits_as_far_as_the_first_column_does(width: int) -> None:
    text = Screen(width).render(Screen(width).draw(TABLE))
    for line in text.splitlines():
        assert cell_len(line) <= max(width, 5)


@pytest.mark.parametrize("width", range(5, 80))
def test_what_is_shown_is_whole_and_in_order(width: int) -> None:
    shown = fitted(TABLE, width).table
    kept = [column.rank for column in shown.columns]
    assert kept == sorted(kept)
    assert kept == list(range(len(kept)))
    for row, whole in zip(shown.rows, TABLE.rows):
        for cell, full in zip(row, whole):
            assert cell.text in (full.text, full.whole)


def test_the_wider_the_more() -> None:
    shown = [fitted(TABLE, width).table for width in range(5, 80)]
    counts = [len(table.columns) for table in shown]
    assert counts == sorted(counts)
    assert set(counts) == {1, 2, 3, 4, 5}


def test_short_heads_come_before_a_column_goes_and_details_last() -> None:
    heads = [fitted(TABLE, width).table.header for width in range(5, 80)]
    short = [head for head in heads if len(head) == 5 and "head" in head]
    assert short
    assert fitted(TABLE, 200).table.rows[0][1].text == "1.0 MiB, of 2.0"
    assert fitted(TABLE, 200).table.rows[0][2].text == "22.22ms [1 2]"
    assert not fitted(TABLE, 200).is_tight


def test_a_name_that_is_too_long_is_folded_not_cut() -> None:
    name = "remat:policy=save_only_these_names(a|b),every=2"
    table = Table(TABLE.columns[:1], [(Cell(name),)])
    text = Screen(20).render(Screen(20).draw(table))
    assert name in "".join(text.split())


def test_wide_letters_count_double() -> None:
    table = Table(TABLE.columns[:2], [(Cell("検査検査検査"), Cell("1"))])
    text = Screen(19).render(Screen(19).draw(table))
    assert len(text.splitlines()[-1].split()) == 2
    assert max(map(cell_len, text.splitlines())) <= 19
