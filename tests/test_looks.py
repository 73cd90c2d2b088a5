"""One table of looks: everything that the engine can give is in it, and everybody draws from it."""

from __future__ import annotations

import ast
import re
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import get_args

import pytest

from ckptcli.measure.memory import PeakLive
from ckptcli.measure.record import RunRecord
from ckptcli.measure.rounds import Plan
from ckptcli.measure.row import WORDS as JUDGEMENTS, Row
from ckptcli.measure.statistics import TimeVerdict
from ckptcli.measure.trace import Fate
from ckptcli.profiling import labels, memory_pass, trace
from ckptcli.profiling.profile import profile
from ckptcli.report import run_table
from ckptcli.report.console import render_run
from ckptcli.report.drawing.style import page_style, why_class
from ckptcli.report.formats import exporter_for
from ckptcli.report.looks import (
    FATES,
    OTHER,
    WHYS,
    WORDS,
    bytes_by_look,
    fate_look,
    why_look,
    word_style,
)
from ckptcli.report.screen import Screen
from ckptcli.workloads.silu import SiluWorkload
from tests.records import balanced_record, none_record, run_record


@pytest.fixture(scope="module")
def record() -> RunRecord:
    return profile(SiluWorkload(2, 8), ["none", "balanced", "remat"], plan=Plan(reps=1))


def words_given(module: ModuleType, *targets: str) -> set[str]:
    """The texts in the source of a module that are assigned to a name, or handed on as one."""
    tree = ast.parse(Path(str(module.__file__)).read_text(encoding="utf-8"))
    texts: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign) and any(
            isinstance(target, ast.Name) and target.id in targets for target in node.targets
        ):
            texts |= constants(node.value)
        if isinstance(node, ast.Call):
            called = node.func.attr if isinstance(node.func, ast.Attribute) else node.func
            name = called.id if isinstance(called, ast.Name) else called
            if name in ("label_live", "relabel", "Label", "_label_first"):
                texts |= set().union(*map(constants, node.args))
    return texts


def constants(node: ast.AST) -> set[str]:
    """The texts that an expression can be, not those that it compares with."""
    if isinstance(node, ast.IfExp):
        return constants(node.body) | constants(node.orelse)
    return {node.value} if isinstance(node, ast.Constant) and isinstance(node.value, str) else set()


def test_every_kind_of_storage_that_the_engine_names_has_a_look(record: RunRecord) -> None:
    named = words_given(labels, "why") | words_given(memory_pass, "why")
    assert {"parameter", "input", "recomputed", "value", "temporary", "output"} <= named
    lived = {life.why for _, known in record.rows_with_trace for life in known.lives}
    peaks = [row.memory.peak_live for row in record.rows if row.memory is not None]
    live = {why for peak in peaks if peak is not None for why in peak.bytes_by_why}
    assert named | lived | live <= set(WHYS)


def test_every_fate_that_a_trace_names_has_a_look() -> None:
    (words,) = get_args(Fate)[1:]
    assert words_given(trace, "fate") <= set(words.words)
    assert set(FATES) == set(words.words)


def test_every_verdict_has_a_tone(record: RunRecord) -> None:
    assert {*JUDGEMENTS, *get_args(TimeVerdict), run_table.REFERENCE, "agrees"} <= set(WORDS)
    shown = {run_table.verdict(row, record) for row in record.rows}
    assert shown <= set(WORDS)


def test_one_glyph_stands_for_one_thing_in_every_legend() -> None:
    looks = {**WHYS, **FATES, OTHER: why_look("unheard of")}
    for kind in ("glyph", "letter"):
        drawn = [getattr(look, kind) for look in looks.values()]
        assert len(set(drawn)) == len(drawn)
        assert all(len(glyph) == 1 for glyph in drawn)
    assert all(look.letter.isascii() for look in looks.values())
    for name in set(WHYS) & set(FATES):
        assert WHYS[name] is FATES[name]


def test_an_output_is_an_output_on_screen_and_page() -> None:
    """Four bytes of a loss are too small for a bar: here it is as large as what is saved."""
    record = run_record(with_live(none_record(), {"saved": 2**20, "output": 2**20}))
    text = render_run(record, Screen(100))
    assert re.search(r"^live at the highest .*: █ saved, O output$", text, flags=re.M)
    assert re.search(r"^none +█+O+ 2\.0 MiB$", text, flags=re.M)
    page = exporter_for("-", "html").render(record)
    assert f'class="why {why_class("output")}"' in str(page)


def with_live(row: Row, bytes_by_why: dict[str, int]) -> Row:
    """The row with this live at the highest point."""
    assert row.memory is not None
    live = PeakLive((), sum(bytes_by_why.values()), len(bytes_by_why), bytes_by_why)
    return replace(row, memory=replace(row.memory, peak_live=live))


def test_the_page_has_the_colours_of_the_table() -> None:
    light, _, dark = page_style().partition("@media (prefers-color-scheme:dark){:root")
    for why, look in WHYS.items():
        assert f".{why_class(why)}{{background:{look.light}}}" in light
        assert f".{why_class(why)}{{background:{look.dark}}}" in dark
    for fate, look in FATES.items():
        assert f".fate-{fate}{{background:{look.light}}}" in light
        assert f".fate-{fate}{{background:{look.dark}}}" in dark
    for tone in set(WORDS.values()):
        assert f".word.{tone.name}{{color:{tone.light}}}" in light
        assert f".word.{tone.name}{{color:{tone.dark}}}" in dark


def test_what_nobody_knows_is_together() -> None:
    assert bytes_by_look({"x": 1, "saved": 2, "y": 3}) == {"saved": 2, OTHER: 4}
    assert fate_look("x") is why_look("y")
    assert word_style("x") == ""


def test_a_bar_has_the_columns_of_its_bytes_whatever_the_parts() -> None:
    """Rounding each part by itself would make bars of one size differ in length."""
    many = dict.fromkeys(("parameter", "input", "saved", "recomputed", "gradient"), 5)
    rows = with_live(none_record(), many), with_live(balanced_record(), {"saved": 25})
    for width in (61, 73, 83):
        lines = render_run(run_record(*rows), Screen(width)).splitlines()
        first, second = [line for line in lines if line.endswith(" 25 B")]
        assert len(first) == len(second)
