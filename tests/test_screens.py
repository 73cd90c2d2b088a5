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
from rich.cells import cell_len

from ckptcli.measure.memory import LiveTensor, Memory
from ckptcli.measure.record import RunRecord
from ckptcli.measure.row import Row
from ckptcli.measure.trace import TimelinePoint
from ckptcli.report.console import next_commands, render_run
from ckptcli.report.readings import answer
from ckptcli.report.screen import Screen
from ckptcli.report.surroundings import machine_line
from tests.helpers import DATA
from tests.picture_records import engines, gradient, module, points
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


def _peaking(record: Row, peak_bytes: int) -> Memory:
    return replace(
        record.memory, ledger_peak_backward_bytes=peak_bytes, traced_peak_backward_bytes=peak_bytes
    )


RUNS: dict[str, Callable[[], RunRecord]] = {
    "run": run_record,
    "unclear": unclear,
    "alone": alone,
    "several": several,
    "engines": engines,
    "module": module,
    "gradient": gradient,
    "points": points,
}

WIDTHS = (40, 60, 80, 120)

GOLDEN = [
    *(("run", width, glyphs, "plain") for width in WIDTHS for glyphs in ("utf8", "ascii")),
    ("run", 80, "utf8", "quiet"),
    ("run", 80, "utf8", "verbose"),
    ("run", 60, "ascii", "verbose"),
    ("unclear", 80, "utf8", "plain"),
    ("alone", 80, "utf8", "verbose"),
    ("several", 120, "utf8", "plain"),
    ("several", 80, "ascii", "plain"),
    *(("engines", width, "utf8", "plain") for width in WIDTHS),
    ("engines", 60, "ascii", "verbose"),
    ("module", 80, "utf8", "plain"),
    ("module", 40, "ascii", "plain"),
    ("gradient", 80, "utf8", "quiet"),
    ("gradient", 40, "utf8", "quiet"),
    ("points", 40, "utf8", "quiet"),
    ("points", 80, "utf8", "plain"),
    ("points", 120, "ascii", "plain"),
]


def screen(run: str, width: int, glyphs: str = "utf8", kind: str = "plain") -> str:
    shown = Screen(width=width, unicode=glyphs == "utf8")
    return render_run(RUNS[run](), shown, verbose=kind == "verbose", quiet=kind == "quiet")


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


SEEDS_LINES = ("device = ", "params + input ", "after forward ", "rep ", "reps ")
"""A script reads one line each: they are left to the terminal to wrap."""


@pytest.mark.sampled(3)
@pytest.mark.parametrize("glyphs", ["utf8", "ascii"])
@pytest.mark.parametrize("width", [*WIDTHS, 100, 200])
@pytest.mark.parametrize("run", RUNS)
def test_no_line_is_wider_than_the_screen(run: str, width: int, glyphs: str) -> None:
    for line in screen(run, width, glyphs, "verbose").splitlines():
        assert line.startswith(SEEDS_LINES) or cell_len(line) <= width, line


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("run", RUNS)
def test_ascii_is_ascii(run: str, width: int) -> None:
    assert screen(run, width, "ascii", "verbose").isascii()


@pytest.mark.parametrize("glyphs", ["utf8", "ascii"])
@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("run", RUNS)
def test_every_row_of_the_table_has_its_whole_name_and_its_peak(
    run: str, width: int, glyphs: str
) -> None:
    """What is left out are columns; the table has a line for each row, whatever the width."""
    record = RUNS[run]()
    text = screen(run, width, glyphs, "verbose")
    assert "…" not in text
    for row in record.rows:
        peak = r"[\d.]+ MiB|n/a"
        begin = [*map(str, row.point.values()), re.escape(record.name_of(row))]
        in_table = re.compile(rf"^ *{' +'.join(begin)} .*({peak})", flags=re.M)
        assert in_table.search(text), record.label(row)


def test_the_narrower_the_fewer_columns_and_the_wider_the_more_details() -> None:
    def columns(width: int) -> list[str]:
        lines = screen("run", width).splitlines()
        (head,) = [line for line in lines if line.startswith("strategy ")]
        return re.split(r" {2,}", head)

    assert columns(40) == ["strategy", "saved", "peak", "total"]
    assert columns(60) == [*columns(40), "vs ref", "verdict"]
    assert len(columns(80)) < len(columns(120)) == 10
    assert "15.9 %" not in screen("run", 120)
    assert ", 5 tensors" in screen("run", 200)


def test_the_answer_comes_first_one_paragraph_a_row() -> None:
    lines = screen("engines", 200).splitlines()
    assert lines[0] == "silu, n = 1024, layers = 2"
    assert lines[1:6] == [
        "none: reference: peak 38.0 MiB, holds 20.0 MiB for backward, takes 100.20ms",
        "balanced: effective: peak 34.0 MiB instead of 38.0 MiB (-11 %), holds 8.0 MiB instead of "
        "20.0 MiB (-60 %) for backward, takes 1.00x the time (same), gradients identical",
        "torch none: agrees: peak 36.0 MiB, holds 20.0 MiB for backward, takes 100.20ms, "
        "1.00x that of ckpt's none (same)",
        "torch balanced: n/a: it decides op by op",
        "jax none: agrees: peak n/a, holds 28.0 MiB for backward, takes 150.30ms, "
        "1.50x that of ckpt's none (slower)",
    ]
    assert lines[7].startswith("strategy ")


@pytest.mark.parametrize("run", RUNS)
def test_quiet_is_the_beginning_of_the_screen_up_to_the_tables(run: str) -> None:
    quiet, plain = screen(run, 100, kind="quiet"), screen(run, 100)
    shown, mark, _ = quiet.partition("\npartial: the run ended early")
    assert plain.startswith(shown)
    assert bool(mark) == RUNS[run]().partial
    assert "device = " in plain
    assert "device = " not in quiet


def test_no_sentence_says_again_what_answer_or_table_say() -> None:
    text = screen("run", 200)
    assert text.count("34.0 MiB instead of 38.0 MiB") == 1
    assert text.count("8.0 MiB instead of 20.0 MiB") == 1
    assert text.count("gradients identical") == 1
    assert text.count("recomputes") == 1


def test_small_figures_are_no_zeros() -> None:
    memory = replace(none_record().memory, params_input_bytes=49152, after_forward_bytes=131072)
    text = render_run(run_record(none_record(memory=memory)), Screen(100))
    assert "params + input          in_use =    48.0 KiB" in text
    assert "after forward           in_use =   128.0 KiB" in text


def test_a_figure_and_its_unit_stay_on_one_line() -> None:
    for width in range(40, 121):
        assert not re.search(r"\d$\n *([KMG]iB|%)", screen("engines", width), flags=re.M)


def test_titles_have_no_folders() -> None:
    lines = screen("module", 100).splitlines()
    assert lines[0] == "module mlp.py:make, Sequential with 1,234 parameters"


def test_next_commands_run_the_same_workload() -> None:
    (export,) = next_commands(run_record())
    assert export.startswith("ckpt run ")
    assert " --workload silu --layers 2 --n 1024 " in export
    assert export.endswith(" --export report.html")
    longer, _ = next_commands(unclear())
    assert "--reps 49" in longer
    assert list(next_commands(run_record(), has_page=True)) == []


def test_a_row_without_anything_to_compare_with_has_no_word() -> None:
    alone = replace(balanced_record(), reference=False, judgement=None)
    record = run_record(alone)
    assert record.reference_of(alone) is None
    assert answer(alone, record).startswith("peak ")


@pytest.mark.parametrize("width", [60, 80, 120])
@pytest.mark.parametrize("position", [0, 10, 20, 30, 39])
def test_the_mark_of_the_highest_op_stays_on_the_screen(width: int, position: int) -> None:
    """Forty ops, the highest any of them, with a long name."""
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
    (mark,) = [line for line in lines if f"node {1000 + position}" in line]
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
    record = run_record(workload={"title": "graph = [bold]x[bold].json:1, ops = 3"})
    assert "[bold]x[bold].json:1" in render_run(record, Screen(width=120))
    peak = replace(
        none_record().memory.peak_live,
        largest=(LiveTensor(0, "[red]op", (1,), 4, "temporary"),),
    )
    memory = replace(none_record().memory, peak_live=peak)
    text = render_run(run_record(none_record(memory=memory)), Screen(), verbose=True)
    assert "[red]op" in text


@pytest.mark.parametrize("run", RUNS)
def test_no_line_ends_in_blanks(run: str) -> None:
    for width in WIDTHS:
        assert not re.search(r"[ \t]+$", screen(run, width, kind="verbose"), flags=re.M)


def test_one_thread_is_no_plural() -> None:
    record = run_record(machine=replace(MACHINE, blas_threads=1))
    for text in (render_run(record, Screen()), machine_line(record)):
        assert ", 1 thread; " in text
