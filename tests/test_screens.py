"""Golden screens of hand-made runs, and what holds of every screen.

`CKPT_UPDATE_SCREENS=1 pytest tests/test_screens.py` writes the files in `tests/data/screens` anew;
read the difference before you commit it. A file's name says the run, the columns, the glyphs, and
whether it is the verbose screen.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from dataclasses import replace

import pytest

from ckptcli.measure.record import (
    LiveTensor,
    Memory,
    RunRecord,
    StrategyRecord,
    TimelinePoint,
)
from ckptcli.report.comparison import machine_line
from ckptcli.report.console import Screen, render_run
from tests.helpers import DATA
from tests.records import BASE, MACHINE, TENSOR, balanced_record, none_record, run_record

SCREENS = DATA / "screens"
UPDATE = os.environ.get("CKPT_UPDATE_SCREENS") == "1"

NOISY = (0.110, 0.093, 0.140, 0.101, 0.125)


def unclear() -> RunRecord:
    """Interrupted after five noisy rounds on a machine that tells little."""
    unknown = replace(MACHINE, cpu=None, cores=None, blas=None, blas_threads=None)
    return run_record(
        none_record(),
        balanced_record(NOISY),
        machine=unknown,
        partial=True,
        stopped="interrupted",
    )


def alone() -> RunRecord:
    """One strategy, nothing to compare it with, no complete round."""
    return run_record(balanced_record([], warmup=()), partial=True, stopped="interrupted")


def several() -> RunRecord:
    """Every judgement but `effective`, and the reference that was added."""
    own = balanced_record()
    same = none_record().memory
    high = _peaking(own, BASE + 9 * TENSOR)
    flat = _peaking(own, same.ledger_peak_bytes)
    wrong = replace(own.outcome, grad_sha256="cd" * 32)
    return run_record(
        none_record(reference=True),
        replace(own, strategy="wrong", outcome=wrong),
        replace(own, strategy="worse", memory=high),
        replace(own, strategy="held", memory=flat),
        replace(own, strategy="same", memory=same),
    )


def _peaking(record: StrategyRecord, peak_bytes: int) -> Memory:
    return replace(
        record.memory, ledger_peak_backward_bytes=peak_bytes, traced_peak_backward_bytes=peak_bytes
    )


RUNS: dict[str, Callable[[], RunRecord]] = {
    "run": run_record,
    "unclear": unclear,
    "alone": alone,
    "several": several,
}

GOLDEN = [
    *(("run", width, glyphs, "plain") for width in (120, 80, 60) for glyphs in ("utf8", "ascii")),
    ("run", 80, "utf8", "verbose"),
    ("run", 60, "ascii", "verbose"),
    ("unclear", 80, "utf8", "plain"),
    ("alone", 80, "utf8", "verbose"),
    ("several", 120, "utf8", "plain"),
    ("several", 80, "ascii", "plain"),
]


def screen(run: str, width: int, glyphs: str = "utf8", kind: str = "plain") -> str:
    shown = Screen(width=width, unicode=glyphs == "utf8")
    return render_run(RUNS[run](), shown, verbose=kind == "verbose")


@pytest.mark.parametrize(("run", "width", "glyphs", "kind"), GOLDEN)
def test_golden(run: str, width: int, glyphs: str, kind: str) -> None:
    path = SCREENS / f"{run}-{width}-{glyphs}-{kind}.txt"
    text = screen(run, width, glyphs, kind)
    if UPDATE:
        path.write_text(text, encoding="utf-8")
    assert text == path.read_text(encoding="utf-8")


def test_every_golden_file_belongs_to_a_test() -> None:
    names = {f"{run}-{width}-{glyphs}-{kind}.txt" for run, width, glyphs, kind in GOLDEN}
    assert {path.name for path in SCREENS.iterdir()} == names


SEEDS_LINES = ("device = ", "params + input ", "rep ", "reps ")
SENTENCES = ("  ", "the time ratio is unclear", "at the peak of backward:", "live bytes over")
"""Sentences are left to the terminal to wrap: a script reads one line each."""


def must_fit(line: str) -> bool:
    if line.startswith(SEEDS_LINES) or "stopped: " in line:
        return False
    is_sentence = line.startswith(SENTENCES[1:]) or re.match(r"  [a-z]", line)
    return not is_sentence


@pytest.mark.sampled(3)
@pytest.mark.parametrize("glyphs", ["utf8", "ascii"])
@pytest.mark.parametrize("width", [60, 80, 100, 120, 200])
@pytest.mark.parametrize("run", RUNS)
def test_tables_and_pictures_fit(run: str, width: int, glyphs: str) -> None:
    for line in screen(run, width, glyphs, "verbose").splitlines():
        assert not must_fit(line) or len(line) <= width, line


@pytest.mark.parametrize("width", [60, 80, 120])
@pytest.mark.parametrize("run", RUNS)
def test_ascii_is_ascii(run: str, width: int) -> None:
    assert screen(run, width, "ascii", "verbose").isascii()


@pytest.mark.parametrize("width", [60, 80, 120])
@pytest.mark.parametrize("run", RUNS)
def test_no_cell_is_cut(run: str, width: int) -> None:
    assert "…" not in screen(run, width, "utf8", "verbose")


@pytest.mark.parametrize("width", [60, 80, 120])
def test_names_and_words_of_the_table_stand_whole(width: int) -> None:
    text = screen("run", width)
    (row,) = [line for line in text.splitlines() if re.match(r" *balanced +\d.*MiB.*ms", line)]
    assert row.split()[-1] == "same"
    assert re.search(r"^ *strategy .*peak.*total", text, flags=re.M)


@pytest.mark.parametrize("width", [60, 80, 120])
@pytest.mark.parametrize("position", [0, 10, 20, 30, 39])
def test_the_mark_of_the_peak_stays_on_the_screen(width: int, position: int) -> None:
    """Forty ops, the peak at any of them, with a long name."""
    timeline = tuple(
        TimelinePoint(
            "forward" if i < 20 else "backward",
            1000 + i,
            "mask_where",
            BASE + TENSOR * (9 if i == position else 1),
            BASE,
            0.01 * i,
            0.01 * (i + 1),
        )
        for i in range(40)
    )
    record = balanced_record()
    record = replace(record, trace=replace(record.trace, timeline=timeline))
    lines = render_run(run_record(none_record(), record), Screen(width=width)).splitlines()
    (mark,) = [line for line in lines if f"of node {1000 + position}" in line]
    assert len(mark) <= width
    (drawn,) = [line for line in lines if line.startswith("balanced ") and "|" in line]
    assert drawn[mark.index("▲")] == "█"


def test_colour_changes_no_text() -> None:
    plain = render_run(several(), Screen(width=100))
    coloured = render_run(several(), Screen(width=100, color=True))
    assert "\x1b[" not in plain
    assert re.sub(r"\x1b\[[\d;]*m", "", coloured) == plain
    for style, word in (("1;31", "wrong"), ("31", "worse"), ("33", "no effect")):
        assert f"\x1b[{style}m{word}\x1b[0m" in coloured


def test_nothing_is_read_as_markup() -> None:
    """Names of programs and of constants come from files."""
    record = run_record(title="graph = [bold]x[/bold].json:1, ops = 3")
    assert "[bold]x[/bold].json:1" in render_run(record, Screen(width=120))
    peak = replace(
        none_record().memory.peak_live,
        largest=(LiveTensor(0, "[red]op", (1,), 4, "temporary"),),
    )
    memory = replace(none_record().memory, peak_live=peak)
    text = render_run(run_record(none_record(memory=memory)), Screen(), verbose=True)
    assert "[red]op" in text


@pytest.mark.parametrize("run", RUNS)
def test_no_line_ends_in_blanks(run: str) -> None:
    for width in (60, 120):
        assert not re.search(r"[ \t]+$", screen(run, width, kind="verbose"), flags=re.M)


def test_one_thread_is_no_plural() -> None:
    record = run_record(machine=replace(MACHINE, blas_threads=1))
    for text in (render_run(record, Screen()), machine_line(record)):
        assert ", 1 thread; " in text
