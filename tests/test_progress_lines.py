"""The seed's lines while they come: each once, in the wording that the screen has in the end."""

from __future__ import annotations

from dataclasses import replace

from ckptcli.measure.record import RunRecord
from ckptcli.measure.rounds import Plan
from ckptcli.measure.row import Passes, Row
from ckptcli.profiling.profile import profile
from ckptcli.report.console import render_run
from ckptcli.report.progress_lines import Shown, new_lines, row_lines
from ckptcli.report.screen import Screen
from ckptcli.workloads.silu import SiluWorkload
from tests.records import balanced_record, engine_row, none_record, run_record

NONE_HEAD = [
    "device = Device<Autodiff { device: Numpy(Cpu), checkpointing: Disabled }>, "
    "n = 1024, layers = 2",
    "params + input          in_use =    12.0 MiB",
    "after forward           in_use =    32.0 MiB",
]


def after(rounds: int) -> RunRecord:
    """The record as it is after the warm-up and so many rounds."""
    return run_record(*(cut(row, rounds) for row in (none_record(), balanced_record())))


def cut(row: Row, rounds: int) -> Row:
    return replace(row, passes=Passes(row.passes.warmup, row.samples[:rounds]))


def told(verbose: bool) -> list[list[str]]:
    """What is new after each of three rounds."""
    shown: Shown = {}
    lines = []
    for rounds in (0, 1, 2):
        new, shown = new_lines(after(rounds), shown, verbose)
        lines.append(new)
    return lines


def test_each_row_is_named_once_and_passes_are_left_out() -> None:
    first, second, third = told(verbose=False)
    assert first[:3] == NONE_HEAD
    assert len(first) == 6
    assert first[3].startswith("device = Device<Autodiff { device: Numpy(Cpu), checkpointing: B")
    assert second == third == []


def test_under_v_each_pass_is_told_with_the_name_of_its_row() -> None:
    first, second, third = told(verbose=True)
    assert [line for line in first if "rep " in line] == [
        "none: rep 0: after forward in_use =    32.0 MiB, forward  50.00ms, backward  75.00ms, "
        "sum(grad w0) = 1234.5000",
        "balanced: rep 0: after forward in_use =    20.0 MiB, forward  50.00ms, "
        "backward  75.00ms, sum(grad w0) = 1234.5000",
    ]
    assert [line.partition(": after")[0] for line in second] == ["none: rep 1", "balanced: rep 1"]
    assert [line.partition(": after")[0] for line in third] == ["none: rep 2", "balanced: rep 2"]


def test_a_row_that_comes_later_is_told_then() -> None:
    first, shown = new_lines(run_record(cut(none_record(), 1)), {}, verbose=False)
    assert first == NONE_HEAD
    second, _ = new_lines(after(1), shown, verbose=False)
    assert len(second) == 3
    assert "checkpointing: Balanced" in second[0]


def test_a_row_with_only_a_reason_has_no_lines() -> None:
    record = run_record(none_record(), engine_row("torch", "balanced", "no counterpart"))
    lines, shown = new_lines(record, {}, verbose=True)
    assert not [line for line in lines if "torch" in line]
    assert set(shown) == {("ckpt", "none", ())}


def test_memory_is_told_before_anything_is_timed() -> None:
    seen: list[tuple[int, int]] = []

    def finished(record: RunRecord) -> None:
        assert all(row.memory is not None for row in record.rows)
        seen.append((len(record.rows), record.rounds))

    profile(SiluWorkload(2, 8), ["none", "balanced"], plan=Plan(2, 1), finished=finished)
    assert seen == [(1, 0), (2, 0), (2, 0), (2, 1), (2, 2)]


def test_the_screen_has_the_same_lines_in_the_same_wording() -> None:
    record = after(2)
    screen = render_run(record, Screen(120), verbose=True).splitlines()
    shown: Shown = {}
    new, _ = new_lines(record, shown, verbose=True)
    for line in new:
        name, mark, rest = line.partition(": rep ")
        assert (f"rep {rest}" if mark else name) in screen
    assert "reps 1..2: median forward 40.04ms, median backward 60.06ms" in screen


def test_a_program_of_both_phases_tells_their_time_together() -> None:
    jax = engine_row("jax", "none", None, [(None, None, 0.08)] * 2, library="JAX 0.10.2")
    memory = replace(
        none_record().memory,  # type: ignore[type-var]
        params_input_bytes=None,
        after_forward_bytes=None,
    )
    record = run_record(none_record(), replace(jax, memory=memory))
    lines = list(row_lines(record.rows[1], record, verbose=True))
    assert lines == [
        "device = jax, n = 1024, layers = 2, strategy = none",
        "rep 0: forward + backward  80.00ms",
        "rep 1: forward + backward  80.00ms",
        "reps 0..1: median forward + backward 80.00ms",
    ]
