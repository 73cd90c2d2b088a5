"""Two saved runs side by side: figures, verdicts, what caps them, exit codes."""

from __future__ import annotations

import io
import json
import math
import random
import re
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from ckptcli.cli.main import run_command
from ckptcli.errors import UsageError
from ckptcli.measure.bootstrap import unpaired_ratio
from ckptcli.measure.compare import compare
from ckptcli.measure.record import RunRecord
from ckptcli.measure.record_json import record_json
from ckptcli.measure.row import Row
from ckptcli.measure.run_pairs import Difference
from tests.records import (
    MACHINE,
    STEADY,
    TENSOR,
    balanced_record,
    changed,
    none_record,
    run_record,
)

Write = Callable[[str, RunRecord], str]


def in_processes(record: Row, processes: int) -> Row:
    """The same samples as if they were spread over several processes."""
    samples = tuple(
        replace(sample, process=position % processes)
        for position, sample in enumerate(record.samples)
    )
    return changed(record, samples=samples)


def scaled(factor: float, times_s: Sequence[float] = STEADY) -> tuple[float, ...]:
    return tuple(factor * time_s for time_s in times_s)


def run(factor: float = 1.0, processes: int = 5, rounds: int = 15, **changes: object) -> RunRecord:
    """A run whose times are `factor` times the usual ones, from several processes."""
    times_s = scaled(factor, [0.100 + 0.0002 * (i % 3) for i in range(rounds)])
    strategies = (none_record(times_s), balanced_record(scaled(1.1, times_s)))
    return run_record(*(in_processes(s, processes) for s in strategies), **changes)


def verdicts(base: RunRecord, new: RunRecord, **options: bool) -> set[str]:
    return {
        ratio.verdict
        for entry in compare(base, new, **options).strategies
        for ratio in (entry.ratios or {}).values()
    }


# The ratio of medians that are not paired.


def test_a_ratio_is_that_of_the_medians_and_its_interval_holds_it() -> None:
    ratio = unpaired_ratio([[2.0, 2.2, 2.1]] * 3, [[1.0, 1.1, 1.2]] * 3, seed=1)
    assert ratio.median == pytest.approx(2.1 / 1.1)
    assert ratio.low < ratio.median < ratio.high
    assert (ratio.exact, ratio.verdict) == (True, "slower")


def test_the_same_samples_and_seed_give_the_same_interval() -> None:
    own, base = [[1.0, 1.3, 1.1, 1.2]] * 2, [[1.0, 1.2, 1.4, 1.1]] * 2
    assert unpaired_ratio(own, base, seed=1) == unpaired_ratio(own, base, seed=1)
    noisy = [[random.Random(i).random() + 1.0 for i in range(20)]]
    assert unpaired_ratio(noisy, noisy, seed=1) != unpaired_ratio(noisy, noisy, seed=2)


def test_under_six_samples_there_is_the_range_and_no_verdict() -> None:
    ratio = unpaired_ratio([[2.0, 4.0]], [[1.0] * 9], seed=0)
    assert (ratio.low, ratio.high) == (2.0, 4.0)
    assert (ratio.exact, ratio.verdict) == (False, "unclear")


def test_processes_that_differ_widen_the_interval() -> None:
    within = [1.00, 1.01, 0.99, 1.00, 1.01]
    base = [within] * 5
    alike = unpaired_ratio([within] * 5, base, seed=0)
    apart = unpaired_ratio([scaled(f, within) for f in (0.9, 1.0, 1.1, 0.95, 1.05)], base, seed=0)
    assert alike.verdict == "same"
    assert apart.verdict == "unclear"
    assert apart.half_width > 3 * alike.half_width


def test_more_comparisons_need_a_clearer_difference() -> None:
    own = [[0.98] * 3 + [1.05 + 0.001 * i for i in range(9)]]
    once, often = (
        unpaired_ratio(own, [[1.0] * 12], seed=0, comparisons=count) for count in (1, 1000)
    )
    assert (once.verdict, often.verdict) == ("slower", "unclear")
    assert (once.low, once.high) == (often.low, often.high)


@pytest.mark.slow
@pytest.mark.slow
def test_equal_programs_are_rarely_called_different() -> None:
    def side(noise: random.Random) -> list[list[float]]:
        levels = [math.exp(noise.gauss(0, 0.01)) for _ in range(5)]
        return [[level * math.exp(noise.gauss(0, 0.01)) for _ in range(5)] for level in levels]

    found = []
    for seed in range(100):
        noise = random.Random(seed)
        found.append(unpaired_ratio(side(noise), side(noise), seed=seed).verdict)
    assert sum(verdict in ("faster", "slower") for verdict in found) <= 8


# Two records.


@pytest.mark.parametrize(
    ("factor", "verdict"), [(1.0, "same"), (1.01, "same"), (1.2, "slower"), (0.8, "faster")]
)
@pytest.mark.slow
def test_verdicts_on_clean_samples(factor: float, verdict: str) -> None:
    comparison = compare(run(), run(factor))
    assert verdicts(run(), run(factor)) == {verdict}
    assert comparison.caps == ()
    for entry in comparison.strategies:
        assert entry.ratios is not None
        assert entry.ratios["total"].median == pytest.approx(factor)


@pytest.mark.slow
def test_the_threshold_decides_what_is_the_same() -> None:
    assert verdicts(run(), run(1.03)) == {"slower"}
    ratios = compare(run(), run(1.03), threshold=0.05).strategies[0].ratios
    assert ratios is not None
    assert ratios["total"].verdict == "same"


@pytest.mark.sampled(3)
@pytest.mark.parametrize(("base", "new"), [(1, 5), (5, 1), (1, 1)])
def test_a_run_of_one_process_caps_the_verdict(base: int, new: int) -> None:
    comparison = compare(run(processes=base), run(1.5, processes=new))
    assert verdicts(run(processes=base), run(1.5, processes=new)) == {"unclear"}
    (cap,) = comparison.caps
    assert "1 process" in cap
    assert cap.endswith("make both with `--processes 5`")  # of a run as of a sweep
    assert comparison.strategies[0].ratios is not None
    assert comparison.strategies[0].ratios["total"].low > 1.4


@pytest.mark.slow
def test_few_processes_are_said_to_be_few() -> None:
    assert any("samples of 2 processes" in note for note in compare(run(), run(processes=2)).notes)
    assert compare(run(), run()).notes == ()


@pytest.mark.slow
def test_different_machines_cap_the_verdict_and_are_named() -> None:
    other = replace(MACHINE, cpu="Other CPU", blas_threads=4)
    base, new = run(), run(1.5, machine=other)
    comparison = compare(base, new)
    assert comparison.machine_differences == (
        Difference("cpu", "Example CPU 3000", "Other CPU"),
        Difference("blas_threads", 8, 4),
    )
    (cap,) = comparison.caps
    assert "cpu is `Example CPU 3000` and `Other CPU`, blas_threads is `8` and `4`" in cap
    assert "--allow-different-machines" in cap
    assert verdicts(base, new) == {"unclear"}
    assert verdicts(base, new, allow_different_machines=True) == {"slower"}


@pytest.mark.slow
def test_another_version_of_the_array_library_is_another_machine() -> None:
    base = replace(run(), device="Torch(Cpu)", library="PyTorch 2.4.0")
    new = replace(run(1.5), device="Torch(Cpu)", library="PyTorch 2.13.0")
    assert [str(difference) for difference in compare(base, new).machine_differences] == [
        "library is `PyTorch 2.4.0` and `PyTorch 2.13.0`"
    ]
    assert verdicts(base, new) == {"unclear"}
    with pytest.raises(UsageError, match="layers is not set in the base, `2` in the other"):
        compare(run_record(workload={"name": "trg", "title": "x"}), run_record())
    with pytest.raises(UsageError, match=r"device is `Numpy\(Cpu\)` and `Torch\(Cpu\)`"):
        compare(run(), new)


@pytest.mark.slow
def test_allowing_other_machines_does_not_lift_the_cap_of_one_process() -> None:
    other = replace(MACHINE, cpu="Other CPU")
    base, new = run(), run(1.5, processes=1, machine=other)
    assert verdicts(base, new, allow_different_machines=True) == {"unclear"}


def test_memory_is_compared_exactly() -> None:
    more = balanced_record()
    more = replace(
        more,
        memory=replace(more.memory, saved_bytes=3 * TENSOR),
        outcome=replace(more.outcome, recomputed_by_op={"mul": 1}),
    )
    (entry,) = compare(run_record(balanced_record()), run_record(more)).strategies
    assert (entry.saved_bytes.base, entry.saved_bytes.new) == (2 * TENSOR, 3 * TENSOR)
    assert entry.saved_bytes.percent == pytest.approx(50.0)
    assert (entry.ledger_peak_bytes.base, entry.ledger_peak_bytes.percent) == (8 * TENSOR, 0.0)
    assert (entry.peak_bytes.base, entry.peak_bytes.percent) == (8 * TENSOR + TENSOR // 2, 0.0)
    assert (entry.recomputed_nodes.base, entry.recomputed_nodes.new) == (3, 1)


@pytest.mark.slow
def test_gradients_are_compared_where_the_seeds_are_the_same() -> None:
    other = replace(none_record(), outcome=replace(none_record().outcome, grad_sha256="cd" * 32))
    assert compare(run_record(), run_record()).strategies[0].gradients_identical is True
    differing = compare(run_record(none_record()), run_record(other))
    assert differing.strategies[0].gradients_identical is False
    seeded = compare(run_record(), run_record(seed=1))
    assert seeded.strategies[0].gradients_identical is None
    assert any("the seeds differ, 0 and 1" in note for note in seeded.notes)


def test_strategies_are_matched_by_name() -> None:
    comparison = compare(
        run_record(none_record(), replace(none_record(), strategy="old")),
        run_record(balanced_record(), none_record()),
    )
    assert [entry.strategy for entry in comparison.strategies] == ["none"]
    assert (comparison.only_base, comparison.only_new) == (("old",), ("balanced",))


def test_runs_without_a_strategy_in_common_are_refused() -> None:
    with pytest.raises(UsageError, match="no strategy is in both runs: the base has none"):
        compare(run_record(none_record()), run_record(balanced_record()))


def test_other_workloads_are_refused_and_the_fields_named() -> None:
    other = {
        "name": "silu",
        "title": "three",
        "layers": 3,
        "n": 1024,
        "batch": 1024,
        "dtype": "float64",
    }
    with pytest.raises(UsageError) as caught:
        compare(run_record(), run_record(workload=other))
    assert "layers is `2` and `3`, dtype is `float32` and `float64`" in caught.value.message
    with pytest.raises(UsageError, match=r"device is `Numpy\(Cpu\)` and `Torch\(Cuda\)`"):
        compare(run_record(), run_record(device="Torch(Cuda)"))


def test_a_run_without_rounds_has_memory_and_no_ratio() -> None:
    empty = run_record(changed(none_record(), samples=()), partial=True)
    comparison = compare(run_record(), empty)
    assert comparison.strategies[0].ratios is None
    assert comparison.unclear == ["none"]
    assert any("partial" in note for note in comparison.notes)


def test_a_sample_of_no_time_is_refused() -> None:
    still = changed(none_record(), samples=none_record((0.1,) * 9).samples)
    zero = changed(still, samples=(*still.samples[:-1], replace(still.samples[0], forward_s=0.0)))
    with pytest.raises(UsageError, match="forward sample of 0 s"):
        compare(run_record(still), replace(run_record(still), rows=(zero,)))


@pytest.mark.slow
def test_a_comparison_is_the_same_whenever_it_is_made() -> None:
    assert compare(run(), run(1.01)) == compare(run(), run(1.01))


# The command.


@pytest.fixture
def write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Write:
    monkeypatch.chdir(tmp_path)

    def to_file(name: str, record: RunRecord) -> str:
        (tmp_path / name).write_text(record_json(record), encoding="utf-8")
        return name

    return to_file


def test_the_screen_has_both_figures_the_ratio_and_the_reason(
    write: Write, capsys: pytest.CaptureFixture[str]
) -> None:
    write("a.json", run(processes=1))
    write("b.json", run(1.2))
    assert run_command(["compare", "a.json", "b.json"]) == 0
    out = capsys.readouterr().out
    assert "base: a.json: silu, n = 1024, layers = 2; 15 rounds in 1 process; ckpt 0.1.0" in out
    assert re.search(r"total +100\.\d+ms \[100\.\d+ 100\.\d+\] +120\.\d+ms \[120", out)
    assert "1.20x [1." in out
    assert "unclear, since the base has samples of 1 process" in out
    assert "method: medians of both runs resampled apart" in out


@pytest.mark.slow
@pytest.mark.parametrize("width", [60, 80])
def test_no_line_is_wider_than_the_screen(
    write: Write, capsys: pytest.CaptureFixture[str], width: int
) -> None:
    write("a.json", run(processes=1))
    write("b.json", run(1.2, seed=1))
    assert run_command(["compare", "a.json", "b.json", "--width", str(width)]) == 0
    assert max(map(len, capsys.readouterr().out.splitlines())) <= width


@pytest.mark.parametrize("width", [40, 50])
def test_a_narrow_comparison_keeps_its_figures(
    write: Write, capsys: pytest.CaptureFixture[str], width: int
) -> None:
    write("a.json", run(processes=1))
    write("b.json", run(1.2, processes=1))
    assert run_command(["compare", "a.json", "b.json", "--width", str(width)]) == 0
    out = capsys.readouterr().out
    assert re.search(r"^total .*120\.\d+ms +1\.20x", out, flags=re.M)
    assert re.search(r"^saved .*MiB +the same", out, flags=re.M)
    assert re.search(r"^gradients +identical", out, flags=re.M)
    assert max(map(len, out.splitlines())) <= width


def test_json_has_every_figure(write: Write, capsys: pytest.CaptureFixture[str]) -> None:
    write("a.json", run())
    write("b.json", run(1.2))
    write("c.json", run(machine=replace(MACHINE, cores=4)))
    assert run_command(["compare", "a.json", "b.json", "c.json", "--json"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert data["schema"] == "ckpt.compare/1"
    assert data["base"]["file"] == "a.json"
    slower, elsewhere = data["comparisons"]
    assert slower["unclear_because"] == []
    none = slower["strategies"][0]
    assert none["strategy"] == "none"
    assert none["total_s"]["base"]["samples"] == 15
    assert none["total_s"]["base"]["processes"] == 5
    ratio = none["total_s"]["ratio"]
    assert (ratio["kind"], ratio["verdict"]) == ("95 %", "slower")
    assert ratio["low"] <= ratio["median"] <= ratio["high"]
    assert none["saved_bytes"] == {"base": 5 * TENSOR, "new": 5 * TENSOR, "percent": 0.0}
    assert none["gradients_identical"] is True
    assert elsewhere["machine_differences"] == [{"field": "cores", "base": 8, "new": 4}]
    assert elsewhere["strategies"][0]["total_s"]["ratio"]["verdict"] == "unclear"


@pytest.mark.sampled(6)
@pytest.mark.parametrize(
    ("options", "code"),
    [
        ([], 0),
        (["--fail-on", "time > 10%"], 3),
        (["--fail-on", "time > 30%"], 0),
        (["--fail-on", "none.time > 10%", "--strict"], 3),
        (["--fail-on", "none.peak_bytes > 1KiB"], 3),
        (["--strict"], 0),
    ],
)
def test_conditions_decide_the_exit_code(
    write: Write, capsys: pytest.CaptureFixture[str], options: list[str], code: int
) -> None:
    write("a.json", run())
    write("b.json", run(1.2))
    assert run_command(["compare", "a.json", "b.json", *options]) == code
    captured = capsys.readouterr()
    assert captured.out.startswith("base: a.json")
    assert ("failed: b.json: none: " in captured.err) == (code == 3)


@pytest.mark.slow
def test_a_capped_time_fires_no_condition_and_says_so(
    write: Write, capsys: pytest.CaptureFixture[str]
) -> None:
    write("a.json", run(processes=1))
    write("b.json", run(1.5, processes=1))
    arguments = ["compare", "a.json", "b.json", "--fail-on", "time > 10%"]
    assert run_command(arguments) == 0
    assert "`--fail-on time > 10%` is not decided" in capsys.readouterr().err
    assert run_command([*arguments, "-q"]) == 0
    assert capsys.readouterr().err == ""
    assert run_command([*arguments, "--strict"]) == 4
    assert run_command([*arguments, "--fail-on", "saved_bytes >= 0%"]) == 3


@pytest.mark.slow
def test_stdin_can_be_one_of_the_files(
    write: Write, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    write("a.json", run())
    text = record_json(run(1.2)).encode()
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text), encoding="utf-8"))
    assert run_command(["compare", "a.json", "-"]) == 0
    assert "none: slower" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["a.json"], "Missing argument 'NEW...'"),
        (["a.json", "absent.json"], "`absent.json` cannot be read: No such file"),
        (["a.json", "text.json"], "`text.json` is not JSON"),
        (["a.json", "other.json"], "`other.json` has schema `x/1`, not `ckpt.run/1`"),
        (["a.json", "bytes.json"], "`bytes.json` is not UTF-8 text: byte 0 is wrong"),
        (["-", "-"], "stdin is given twice"),
        (["a.json", "a.json", "--fail-on", "time"], "is not a condition"),
        (["a.json", "a.json", "--fail-on", "sqrt.time > 1%"], "unknown strategy"),
        (["a.json", "wrong.json"], "strategies[0].saved_bytes is 'many'"),
    ],
)
def test_bad_input_ends_with_2_and_one_message(
    write: Write,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
    message: str,
) -> None:
    write("a.json", run())
    (tmp_path / "text.json").write_text("{")
    (tmp_path / "other.json").write_text('{"schema": "x/1"}')
    (tmp_path / "bytes.json").write_bytes(b"\xff")
    data = json.loads(record_json(run()))
    data["strategies"][0]["saved_bytes"] = "many"
    (tmp_path / "wrong.json").write_text(json.dumps(data))
    assert run_command(["compare", *arguments]) == 2
    captured = capsys.readouterr()
    assert message in captured.err
    assert "Traceback" not in captured.err
    assert captured.out == ""
