"""Peak is one word for one figure: the ledger's with the workspace of kernels on top.

In the hand-made record both differ: `none` has 36 MiB by the ledger and needs 38, `balanced` 32
and 34.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from html import unescape

import pytest

from ckptcli.measure.compare import compare
from ckptcli.measure.conditions import EXACT
from ckptcli.measure.record import RunRecord
from ckptcli.measure.record_json import record_object
from ckptcli.report.compare_files import Comparisons, MarkdownComparison
from ckptcli.report.console import render_run
from ckptcli.report.drawing.scatter import scatter_svg
from ckptcli.report.formats import exporter_for
from ckptcli.report.glossary import define
from ckptcli.report.gradient_table import gradient_table
from ckptcli.report.run_table import table
from ckptcli.report.screen import Screen
from tests.records import balanced_record, none_record, run_record

PEAKS = {"none": "38.0 MiB", "balanced": "34.0 MiB"}
LEDGERS = {"none": "36.0 MiB", "balanced": "32.0 MiB"}

SAID = re.compile(r"\bpeak(?:s|_bytes)?\b[ :=]*(?:is |stays at )?([\d.]+ [KMG]?i?B)")
"""The word with a figure behind it."""


@pytest.fixture(scope="module")
def record() -> RunRecord:
    rows = [
        replace(row, outcome=replace(row.outcome, gradient=0.5))
        for row in (none_record(), balanced_record())
        if row.outcome is not None
    ]
    return run_record(*rows)


def texts(record: RunRecord) -> Iterator[tuple[str, str]]:
    """Everything that a reader can be shown of a run, as one line each."""
    for width in (40, 80, 120, 200):
        yield f"screen of {width}", render_run(record, Screen(width), verbose=True)
    yield "Markdown", str(exporter_for("-", "md").render(record))
    page = str(exporter_for("-", "html").render(record))
    yield "page", unescape(re.sub(r"<style>.*?</style>", "", page).replace("<", " <"))
    yield "picture", str(exporter_for("-", "svg").render(record))
    yield (
        "comparison",
        MarkdownComparison().render(Comparisons("a", ["b"], [compare(record, record)])),
    )


def test_the_record_has_two_figures_and_names_them_apart(record: RunRecord) -> None:
    for row in record_object(record)["strategies"]:
        assert row["peak_bytes"] == row["ledger_peak_bytes"] + row["workspace_bytes"]
        assert row["workspace_bytes"] > 0


def test_wherever_the_word_stands_before_a_figure_it_is_the_same_figure(
    record: RunRecord,
) -> None:
    said = {}
    for place, text in texts(record):
        said[place] = set(SAID.findall(" ".join(text.split())))
        assert said[place] <= set(PEAKS.values()), place
    for place in ("screen of 40", "screen of 120", "Markdown", "page"):
        assert said[place] == set(PEAKS.values()), place


def test_the_ledgers_figure_is_never_called_peak(record: RunRecord) -> None:
    """It stands where the pass is drawn, as what is live."""
    for place, text in texts(record):
        flat = " ".join(text.split())
        for ledger in LEDGERS.values():
            before = [flat[max(0, m.start() - 12) : m.start()] for m in re.finditer(ledger, flat)]
            assert not [words for words in before if "peak" in words], place


def test_tables_have_it(record: RunRecord) -> None:
    gradients = gradient_table(record)
    assert gradients is not None
    for drawn in (table(record), gradients):
        column = drawn.header.index("peak")
        assert {row[0].text: row[column].text for row in drawn.rows} == PEAKS


def test_the_scatter_has_it(record: RunRecord) -> None:
    """In words, and in its height: the higher of two peaks is as much higher as its bytes are."""
    picture = str(scatter_svg(record))
    for name, peak in PEAKS.items():
        assert re.search(rf"<title>{name}: [^<]*, peak {peak}</title>", picture)
    high, low = (float(y) for y in re.findall(r'<circle [^>]*cy="([\d.]+)"', picture))
    assert (284 - low) / (284 - high) == pytest.approx(34 / 38, abs=2e-3)


def test_the_gate_has_it(record: RunRecord) -> None:
    for row in record.rows:
        assert EXACT["peak_bytes"](row) == row.peak_bytes
        assert row.memory is not None
        assert EXACT["ledger_peak_bytes"](row) == row.memory.ledger_peak_bytes


def test_the_verdict_goes_by_it(record: RunRecord) -> None:
    judgement = record.rows[1].judgement
    assert judgement is not None
    assert judgement.reason == "peak 34.0 MiB instead of 38.0 MiB (-11 %)"


def test_explain_says_which_key_is_which() -> None:
    assert define("peak_bytes")[0] == "peak"
    assert define("ledger_peak_bytes")[0] == "ledger peak"
    assert define("workspace_bytes")[0] == "workspace"
    assert "ledger peak" in define("peak")[1]
    assert "workspace" in define("peak")[1]
