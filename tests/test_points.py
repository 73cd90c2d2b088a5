"""Runs of several programs: a row a value and strategy, judged among those of its own program."""

from __future__ import annotations

import time
import weakref
from collections.abc import Sequence
from dataclasses import replace

import pytest

from ckptcli.backends import open_backend
from ckptcli.checkpoint.strategies.registry import parse_strategy
from ckptcli.errors import UsageError
from ckptcli.measure.analysis import analysed
from ckptcli.measure.compare import compare
from ckptcli.measure.point import beside_point, point_text
from ckptcli.measure.points import Part, common_workload, joined
from ckptcli.measure.record import RunRecord
from ckptcli.measure.record_json import read_record, record_json
from ckptcli.measure.rounds import Plan
from ckptcli.measure.row import Passes
from ckptcli.measure.stability import Load, stability_warnings
from ckptcli.profiling.out_of_memory import PassOutOfMemory
from ckptcli.profiling.points import profile_points
from ckptcli.profiling.processes import merged
from ckptcli.profiling.profile import profile, silent
from ckptcli.report.console import next_commands
from ckptcli.report.gradient_table import gradient_lines, gradient_table
from ckptcli.report.progress_lines import new_lines
from ckptcli.report.run_table import command_line, table
from ckptcli.workloads.base import Workload
from ckptcli.workloads.silu import SiluWorkload
from ckptcli.workloads.trg import TrgWorkload
from tests.picture_records import engines, gradient, points
from tests.points_kit import LAYERS, planned, surroundings
from tests.records import balanced_record, none_record, run_record, samples
from tests.refusing_backend import RefusingBackend

TINY = ("-n", "8", "--reps", "2")


def points_of(record: RunRecord) -> list[tuple[str, dict[str, float]]]:
    return [(row.strategy, row.point) for row in record.rows]


# The record.


def test_rows_are_those_of_each_program_alone() -> None:
    record = profile_points(planned(), surroundings(), silent)
    assert points_of(record) == [
        (name, {"layers": layers}) for layers in LAYERS for name in ("none", "balanced")
    ]
    for part, layers in zip(record.parts, LAYERS):
        alone = profile(SiluWorkload(layers, 8), plan=Plan(reps=2))
        assert part.workload == alone.workload
        assert [row.strategy for row in part.rows] == [row.strategy for row in alone.rows]
        for row, other in zip(part.rows, alone.rows):
            assert row.outcome == other.outcome
            assert row.memory is not None
            assert other.memory is not None
            assert row.memory.saved_bytes == other.memory.saved_bytes
            assert row.memory.ledger_peak_bytes == other.memory.ledger_peak_bytes
            assert row.judgement == other.judgement
            assert row.trace is not None
            assert other.trace is not None
            assert row.trace.nodes == other.trace.nodes
    assert (record.rounds, record.partial) == (2, False)
    assert read_record(record_json(record), "it") == record


def test_each_row_is_judged_beside_those_of_its_own_program() -> None:
    record = points()
    for row in record.rows:
        reference = record.reference_of(row)
        assert reference is not None
        assert (reference.strategy, reference.point) == ("none", row.point)
        assert record.base_of(row) is (None if row is reference else reference)
        assert (row.ratios is None) == (row is reference)
    assert [row.own_ratio for row in record.rows] == [None] * 4


def test_rows_of_engines_are_held_to_ckpts_row_of_their_own_program() -> None:
    first = engines()
    slower = run_record(none_record([2 * t for t in (0.1,) * 9]), *first.rows[1:])
    parts = [Part({"n": 1}, first), Part({"n": 2}, slower)]
    record = joined(parts, common_workload([first.workload, slower.workload], {"n": "1,2"}))
    torch = [row for row in record.rows if row.name == "torch none"]
    ratios = [row.own_ratio.median for row in torch if row.own_ratio is not None]
    assert ratios[0] == pytest.approx(1.0)
    assert ratios[1] == pytest.approx(0.5, rel=0.01)
    assert [peer.point for peer in record.peers] == [{"n": 1}] * 3 + [{"n": 2}] * 3
    assert [record.label(row) for row in torch] == ["n=1 torch none", "n=2 torch none"]
    assert [record.name_of(row) for row in torch] == ["torch none"] * 2


def test_verdicts_are_corrected_for_the_comparisons_of_all_programs() -> None:
    """Nine rounds whose interval at 1 - 0.05 / k ends for some k at the widest of all."""
    times = [0.1 * (1.03 + 0.001 * i) for i in range(9)]
    one = run_record(none_record([0.1] * 9), balanced_record(times))
    parts = [Part({"n": n}, one) for n in range(14)]
    whole = joined(parts, {"name": "silu", "title": ""})
    verdicts = [row.ratios["total"].verdict for row in whole.rows if row.ratios]
    assert one.rows[1].ratios is not None
    assert one.rows[1].ratios["total"].verdict == "slower"
    assert verdicts == ["unclear"] * 14, "nine rounds are too few for 14 verdicts"
    assert [r.ratios["total"].median for r in whole.rows if r.ratios] == [
        one.rows[1].ratios["total"].median
    ] * 14


def test_what_every_program_says_is_said_once_and_the_rest_with_whose_it_is() -> None:
    first = run_record(warnings=("busy", "a", "twice"), stopped="2 rounds, as asked")
    second = run_record(warnings=("busy", "b"), stopped="interrupted", partial=True)
    record = points(first, replace(second, workload={**second.workload, "n": 64}))
    assert record.warnings == ("busy", "n=1024: a", "n=1024: twice", "n=64: b")
    assert record.stopped == "n=1024: 2 rounds, as asked; n=64: interrupted"
    assert record.partial
    assert joined([Part({"n": 1}, first)], first.workload).warnings == first.warnings


def test_the_workload_is_what_all_have_in_common_with_the_lists_in_the_title() -> None:
    known = [SiluWorkload(layers, n) for layers in (4, 8) for n in (64, 256)]
    whole = common_workload(
        [{**of.settings, "title": of.title} for of in known], {"layers": "4,8", "n": "64,256"}
    )
    assert whole == {
        "name": "silu",
        "dtype": "float32",
        "title": "layers = 4,8, n = 64,256",
    }
    broadened = [TrgWorkload(3, svd_eps=eps) for eps in (1e-3, 1e-12)]
    found = common_workload(
        [{**of.settings, "title": of.title} for of in broadened[:1]], {"svd_eps": "1e-3,1e-12"}
    )
    assert found["title"] == "steps = 3, chi = 16, beta = 0.3, svd-eps = 1e-3,1e-12"
    assert "svd_eps" not in found


def test_points_are_written_with_every_digit() -> None:
    assert point_text({"layers": 4, "svd_eps": 1e-12}) == "layers=4 svd-eps=1e-12"
    assert point_text({"beta": 0.44068679350977147}) == "beta=0.44068679350977147"
    assert beside_point({}, "none") == "none"
    assert beside_point({"n": 64}, "torch none") == "n=64 torch none"


# Memory, interrupts, failures.


def test_a_program_is_let_go_of_before_the_next_is_opened() -> None:
    opened: list[weakref.ref[Workload]] = []

    def open(layers: int) -> Workload:
        assert [of() for of in opened] == [None] * len(opened)
        workload = SiluWorkload(layers, 8)
        opened.append(weakref.ref(workload))
        return workload

    profile_points(planned(open), surroundings(), silent)
    assert len(opened) == len(LAYERS)


def test_the_time_is_shared() -> None:
    told: list[str] = []
    of = surroundings(plan=Plan(reps=None, max_time_s=2e-3), strategies=[parse_strategy("none")])
    record = profile_points(planned()[:2], of, lambda phase, done, most: told.append(phase))
    assert {"layers=1 timing", "layers=2 timing"} <= {*told}
    for part in record.parts:
        assert part.rounds >= 9
    assert "--max-time 0.001 s after 9 rounds" in record.stopped or "within 1 %" in record.stopped


def interrupted(phase: str) -> RunRecord:
    """A run whose second program an interrupt meets in `phase`, if not before its second step."""

    def tell(told: str, done: int, most: int) -> None:
        if told == phase and done >= 1:
            raise KeyboardInterrupt("interrupted")

    return profile_points(planned(), surroundings(plan=Plan(reps=4)), tell)


def test_an_interrupt_keeps_the_rounds_of_the_program_that_it_meets() -> None:
    record = interrupted("layers=2 timing")
    assert (record.partial, record.rounds) == (True, 1)
    assert [len(row.samples) for row in record.rows] == [4, 4, 1, 1]
    assert record.warnings[0] == "interrupted: not measured: layers=3"
    assert record.stopped == "layers=1: 4 rounds, as asked; layers=2: interrupted"
    assert [part.title for part in record.parts] == ["n = 8, layers = 1", "n = 8, layers = 2"]
    assert read_record(record_json(record), "it") == record
    again = command_line(record)
    assert again is not None
    assert "--layers 1..3" in again
    assert "--reps 4" in again


def test_an_interrupt_in_a_memory_pass_keeps_the_programs_before() -> None:
    record = interrupted("layers=2 memory")
    assert points_of(record) == [
        ("none", {"layers": 1}),
        ("balanced", {"layers": 1}),
        ("none", {"layers": 2}),
    ]
    assert [len(row.samples) for row in record.rows] == [4, 4, 0]
    assert record.partial


def test_an_interrupt_before_a_program_has_anything_keeps_those_before() -> None:
    def open(layers: int) -> Workload:
        if layers == 2:
            raise KeyboardInterrupt
        return SiluWorkload(layers, 8)

    record = profile_points(planned(open), surroundings(), silent)
    assert points_of(record) == [("none", {"layers": 1}), ("balanced", {"layers": 1})]
    assert record.warnings[0] == "interrupted: not measured: layers=2, layers=3"
    assert record.partial
    with pytest.raises(KeyboardInterrupt):
        profile_points(planned(open)[1:], surroundings(), silent)


def test_finished_gets_what_is_complete_so_far() -> None:
    """Of each round only where telling takes a small share of the time."""
    seen: list[tuple[int, bool]] = []

    def finished(record: RunRecord) -> None:
        seen.append((len(record.rows), record.partial))
        record_json(record)

    record = profile_points(planned(), surroundings(), silent, finished)
    rows = [count for count, _ in seen]
    assert rows == sorted(rows)
    assert 1 <= rows[0] <= rows[-1] <= len(record.rows) == 6
    assert all(partial for _, partial in seen)


@pytest.mark.slow
def test_telling_takes_a_share_of_the_time_however_much_there_is_to_tell() -> None:
    """A slow reader is told of few rounds."""
    told: list[int] = []

    def finished(record: RunRecord) -> None:
        told.append(len(record.rows))
        end_s = time.perf_counter() + 0.05
        while time.perf_counter() < end_s:
            pass

    profile_points(planned()[:2], surroundings(plan=Plan(reps=12)), silent, finished)
    assert 0 < len(told) < 2 * 12 // 2


def test_a_program_that_does_not_fit_is_told_and_the_others_go_on() -> None:
    """At n = 16 a tensor is 1 KiB: one layer needs 5 KiB, three more than 8."""
    backend = RefusingBackend(open_backend(), 8 * 1024)
    record = profile_points(
        planned(lambda layers: SiluWorkload(layers, 16)), surroundings(backend), silent
    )
    assert {tuple(row.point.values()) for row in record.rows} >= {(1,)}
    failed = {failure.point["layers"] for failure in record.failures}
    assert failed >= {3}
    assert any(failure.label == "layers=3 none" for failure in record.failures)
    assert read_record(record_json(record), "it") == record
    assert all(part.rows for part in record.parts)
    with pytest.raises(PassOutOfMemory) as caught:
        profile_points(planned(lambda _: SiluWorkload(3, 64)), surroundings(backend), silent)
    assert len(caught.value.failures) == 6


# Several processes.


def test_processes_are_merged_program_by_program() -> None:
    one, two = points(), points()
    whole = merged([one, two])
    assert [len(row.samples) for row in whole.rows] == [18] * 4
    assert points_of(whole) == points_of(one)


def test_a_process_that_was_stopped_takes_no_program_from_the_others() -> None:
    from ckptcli.profiling.processes import _complete

    whole = points()
    parts = [Part({"n": 64}, whole.parts[0])]
    stopped = joined(parts, whole.workload)
    found = merged([whole, stopped])
    assert [len(row.samples) for row in found.rows] == [18, 18, 9, 9]
    assert [{s.process for s in row.samples} for row in found.rows] == [{0, 1}] * 2 + [{0}] * 2
    bare = [replace(row, passes=Passes()) for row in whole.rows[2:3]]
    met = analysed(replace(whole, rows=(*whole.rows[:2], *bare)))
    complete = _complete(met)
    assert complete is not None
    assert points_of(complete) == points_of(stopped)
    assert _complete(analysed(replace(met, rows=bare, programs=met.programs[1:]))) is None


# Reports.


def test_the_table_has_a_column_for_each_option_that_varies() -> None:
    record = points()
    drawn = table(record)
    assert drawn.header[:3] == ["n", "strategy", "saved"]
    assert [[cell.text for cell in row[:2]] for row in drawn.rows] == [
        [n, name] for n in ("64", "1024") for name in ("none", "balanced")
    ]
    assert table(run_record()).header[0] == "strategy"


def test_gradients_stand_beside_the_exact_value_of_their_own_program() -> None:
    first, other = gradient(), gradient()
    outcome = other.rows[0].outcome
    assert outcome is not None
    moved = replace(outcome, gradient=1.5, exact=(0.5, 1.5), finite_difference=1.5)
    second = analysed(replace(other, rows=[replace(row, outcome=moved) for row in other.rows]))
    parts = [Part({"beta": 0.3}, first), Part({"beta": 0.44}, second)]
    record = joined(parts, common_workload([first.workload] * 2, {"beta": "0.3,0.44"}))
    drawn = gradient_table(record)
    assert drawn is not None
    assert [[cell.text for cell in row[:5]] for row in drawn.rows] == [
        [beta, name, f"{value:.15f}", error, distance]
        for beta, value, error, distance in (
            ("0.3", 0.844, "-1.0e-04", "5.0e-05"),
            ("0.44", 1.5, "+0.0e+00", "0.0e+00"),
        )
        for name in ("none", "balanced")
    ]
    lines = gradient_lines(record)
    assert len(lines) == 2
    assert lines[0].startswith("beta=0.3: lnZ/N = ")
    assert "exact gradient = 1.5" in lines[1]


def test_progress_lines_tell_each_program_apart() -> None:
    lines, shown = new_lines(points(), {}, verbose=True)
    assert sum(line.endswith("n = 64, layers = 2") for line in lines) == 2
    assert sum(line.endswith("n = 1024, layers = 2") for line in lines) == 2
    assert any(line.startswith("n=64 balanced: rep 0: ") for line in lines)
    assert len(shown) == 4
    assert new_lines(points(), shown, verbose=True)[0] == []


def test_what_puts_times_in_doubt_says_whose_they_are() -> None:
    """The rounds of one row of four are far apart."""
    found = stability_warnings(points(), Load(None, None), None)
    assert len(found) == 1
    assert found[0].startswith("n=1024 balanced: the middle half of the times spreads over 19 %")


def test_next_commands_name_the_list() -> None:
    for command in next_commands(points()):
        assert " --layers 2 --n 64,1024 " in command
        assert "--batch" not in command, "which follows from n"


# Comparing.


def test_runs_are_compared_point_by_point() -> None:
    found = compare(points(), points())
    assert [(entry.strategy, dict(entry.point)) for entry in found.strategies] == [
        (row.strategy, row.point) for row in points().rows
    ]
    assert [entry.label for entry in found.strategies][:2] == ["n=64 none", "n=64 balanced"]
    assert found.comparisons == 4
    assert {entry.saved_bytes.percent for entry in found.strategies} == {0.0}


def test_what_one_run_lacks_is_said() -> None:
    whole = points()
    part = joined([Part({"n": 1024}, whole.parts[1])], whole.workload)
    found = compare(whole, part)
    assert [entry.label for entry in found.strategies] == ["n=1024 none", "n=1024 balanced"]
    assert found.only_base == ("n=64 none", "n=64 balanced")
    assert found.only_new == ()


def test_a_run_of_one_program_is_compared_with_that_of_a_list() -> None:
    alone, whole = run_record(), points()
    for base, new in ((alone, whole), (whole, alone)):
        found = compare(base, new)
        assert [entry.label for entry in found.strategies] == ["n=1024 none", "n=1024 balanced"]
    other = run_record(workload={**alone.workload, "n": 128, "batch": 128})
    with pytest.raises(UsageError, match="no strategy is in both runs: the base has n=64 none"):
        compare(whole, other)


def test_what_varies_in_neither_has_to_be_the_same() -> None:
    whole = points()
    deeper = replace(whole, workload={**whole.workload, "layers": 3})
    with pytest.raises(UsageError, match="layers is `2` and `3`"):
        compare(whole, deeper)
    programs = [
        replace(program, workload={**program.workload, "batch": 7}) for program in whole.programs
    ]
    with pytest.raises(UsageError, match="batch is `64` and `7`"):
        compare(whole, replace(whole, programs=programs))


def test_samples_are_none_of_anothers() -> None:
    """Scripted times: those of a program stay with it."""
    fast, slow = (run_record(none_record(samples=samples([t] * 9))) for t in (0.1, 0.2))
    record = points(fast, replace(slow, workload={**slow.workload, "n": 64}))
    medians: Sequence[float | None] = [row.median_s("total") for row in record.rows]
    assert medians == [pytest.approx(0.1), pytest.approx(0.2)]
