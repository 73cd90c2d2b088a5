"""The `chain` experiment: its counts, what each merge rule shows, and how the command ends."""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from ckptcli.backends import open_backend
from ckptcli.cli.main import run_command
from ckptcli.measure.experiment_record import ExperimentRecord, experiment_json
from ckptcli.measure.machine import read_machine
from ckptcli.profiling.experiment import carried_out
from ckptcli.report.console import Screen
from ckptcli.report.experiment_console import render_experiment
from ckptcli.traced import Tracer, grad, history
from ckptcli.traced.program import instruction_count
from ckptcli.workloads.chain import ChainExperiment, is_measured
from ckptcli.workloads.chain_programs import Trg
from tests.backend_kit import NEEDS_TORCH

CHAIN = ["run", "--workload", "chain"]
NEEDS_TERMINALS = pytest.mark.skipif(os.name == "nt", reason="Windows has no pty and no SIGALRM")


def found(capsys: pytest.CaptureFixture[str], *arguments: str, code: int = 0) -> Any:
    """The JSON object of a run that ends with this exit code."""
    assert run_command([*CHAIN, *arguments, "--json"]) == code
    return json.loads(capsys.readouterr().out)


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    ("op", "merge", "entries"),
    [
        ("mul", "copy", [2**n - 1 for n in range(1, 19)]),
        ("add", "copy", list(range(1, 13))),
        ("mul", "shared", list(range(1, 19))),
        ("add", "shared", list(range(1, 13))),
        ("mul", "left", list(range(1, 19))),
        ("mul", "ptr-eq", list(range(1, 19))),
        ("mul", "dedup", list(range(1, 19))),
        ("trg", "shared", [1, 2, 3, 4]),
        ("trg", "ptr-eq", [1, 2, 3, 4]),
        ("trg", "dedup", [1, 2, 3, 4]),
        ("trg", "copy", [1, 25, 601, 14425]),
    ],
)
def test_entries_of_each_round(
    op: str, merge: str, entries: list[int], capsys: pytest.CaptureFixture[str]
) -> None:
    data = found(capsys, "--op", op, "--rounds", str(len(entries)), "--merge", merge)
    assert data["schema"] == "ckpt.experiment/1"
    assert (data["partial"], data["stopped"], data["wrong"]) == (False, None, [])
    assert [row["round"] for row in data["rounds"]] == list(range(1, len(entries) + 1))
    assert [row["entries"] for row in data["rounds"]] == entries
    assert [row["graphs"] for row in data["rounds"]] == list(range(1, len(entries) + 1))
    for row in data["rounds"]:
        assert row["entries_on_gradient"] == 0
        assert all(row[name] > 0.0 for name in ("build_s", "grad_s", "release_s"))
    assert data["facts"]["chain_release_s"] > 0.0


@pytest.mark.parametrize("arguments", [[], ["--merge", "copy"], ["--merge", "left"]])
def test_without_rounds_it_is_the_seeds(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    data = found(capsys, *arguments)
    assert len(data["rounds"]) == 18
    assert data["facts"]["gradient"] == 2.0**18


def test_the_trg_with_and_without_checkpoints(capsys: pytest.CaptureFixture[str]) -> None:
    data = found(capsys, "--op", "trg", "--merge", "copy")
    assert [row["entries_on_value"] for row in data["rounds"]][-1] == 15679
    facts = data["facts"]
    assert facts["gradient"] == pytest.approx(0.844054073623856, abs=1e-12)
    assert facts["value"] == pytest.approx(0.799095207857105, abs=1e-12)
    assert facts["same_bits"] is True
    assert set(facts["grad_s"]) == {"with_checkpoints", "without"}
    assert facts["segments_replay"]["kept_bytes"] == 8 + 4352
    assert facts["segments_residuals"]["kept_bytes"] > 4352
    gradients = {facts[f"segments_{name}"]["gradient"] for name in ("replay", "residuals")}
    assert len(gradients) == 1
    assert gradients.pop() == pytest.approx(0.844054073623856, abs=1e-12)


@pytest.mark.slow
@NEEDS_TORCH
def test_another_backend(capsys: pytest.CaptureFixture[str]) -> None:
    data = found(capsys, "--op", "trg", "--rounds", "3", "--backend", "torch")
    assert data["device"].startswith("Torch")
    assert data["facts"]["gradient"] == pytest.approx(1.023802944795144, abs=1e-12)
    assert data["facts"]["same_bits"] is True
    assert data["facts"]["segments_replay"]["kept_bytes"] == 8 + 128 + 128 + 2048


def test_the_left_rule_loses_a_gradient(capsys: pytest.CaptureFixture[str]) -> None:
    assert found(capsys)["facts"]["gradient_by_the_right_operand"] == 24.0
    lost = found(capsys, "--merge", "left")
    assert lost["facts"]["gradient_by_the_right_operand"] == (
        "vjp output is inactive for User { id: 1 }"
    )
    wrong = found(capsys, "--op", "trg", "--merge", "left", code=5)
    (sentence,) = wrong["wrong"]
    assert "without checkpoints 0.84405407362385" in sentence
    assert wrong["facts"]["same_bits"] is False


@pytest.mark.parametrize(
    ("merge", "on_value"), [("ptr-eq", [1, 3, 6, 10, 15]), ("dedup", [1, 2, 3, 4, 5])]
)
@pytest.mark.slow
def test_the_repairs_that_the_seed_leaves_untried(
    merge: str, on_value: list[int], capsys: pytest.CaptureFixture[str]
) -> None:
    """Of lnZ/N as of the state, and both operands' gradients; the bits without checkpoints."""
    data = found(capsys, "--op", "trg", "--rounds", "5", "--merge", merge)
    assert [row["entries_on_value"] for row in data["rounds"]] == on_value
    assert [row["graphs"] for row in data["rounds"]] == [1, 2, 3, 4, 5]
    facts = data["facts"]
    assert (facts["same_bits"], facts["gradient_by_the_right_operand"]) == (True, 24.0)
    assert facts["gradient"] == pytest.approx(0.744793433247367, abs=1e-12)


@pytest.mark.sampled(5)
@pytest.mark.parametrize("merge", ["shared", "copy", "ptr-eq", "dedup"])
@pytest.mark.parametrize(
    ("op", "instructions"),
    [
        ("mul", [4 * n - 1 for n in range(1, 9)]),
        ("add", list(range(1, 9))),
        ("trg", [58 + 197 * n for n in range(1, 5)]),
    ],
)
def test_instructions_of_the_gradients_program(
    op: str, instructions: list[int], merge: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Of n squares n - 1 forward, and n times two products and their sum; of n sums a sum each. The
    notes count 871, 1073 and 1272 at 4 to 6 steps of the TRG, about 200 a step too.
    """
    data = found(capsys, "--op", op, "--rounds", str(len(instructions)), "--merge", merge)
    assert [row["instructions"] for row in data["rounds"]] == instructions


def test_instructions_are_counted_without_making_the_program() -> None:
    for checkpoints in (True, False):
        tracer = Tracer()
        program = Trg(tracer, checkpoints)
        for _ in range(3):
            program.advance()
            gradient = grad(program.output(), program.leaf)
            made = tracer.compiler.compile([gradient])
            assert instruction_count([gradient]) == len(made.instructions)
        assert len(made.instructions) == 649


def test_many_rounds_give_a_selection(capsys: pytest.CaptureFixture[str]) -> None:
    data = found(capsys, "--op", "add", "--rounds", "1234")
    assert [row["round"] for row in data["rounds"]] == [*range(1, 33), 100, 1000, 1234]
    assert data["rounds"][-1]["entries"] == 1234
    assert data["facts"]["gradient"] == 1235.0
    assert set(data["facts"]["round_s"]) == {"first_tenth", "last_tenth"}
    assert "powers of ten" in data["selection"]


def test_what_is_not_finite_is_null(capsys: pytest.CaptureFixture[str]) -> None:
    data = found(capsys, "--rounds", "1100")
    assert data["facts"]["gradient"] is None
    assert data["wrong"] == []


def test_which_rounds_are_measured() -> None:
    measured = [n for n in range(1, 20_001) if is_measured(n, 20_000)]
    assert measured == [*range(1, 33), 100, 1000, 10_000, 20_000]


def test_times_come_from_the_clock_and_rounds_are_averaged() -> None:
    """A clock that advances by one second a reading: every span that is timed takes one."""
    seconds = itertools.count()
    told: list[int] = []
    record, failure = carried_out(
        ChainExperiment("mul", 2000, "shared"),
        open_backend(),
        lambda done, most: told.append(done),
        lambda: float(next(seconds)),
    )
    assert failure is None
    assert {row[name] for row in record.rounds for name in ("build_s", "grad_s")} == {1.0}
    assert record.facts["round_s"] == {"first_tenth": 1.0, "last_tenth": 1.0}
    assert told == [1000, 2000]


def test_a_stop_keeps_the_complete_rounds() -> None:
    def stop(done: int, most: int) -> None:
        raise KeyboardInterrupt("terminated")

    record, failure = carried_out(ChainExperiment("mul", 5000, "shared"), open_backend(), stop)
    assert failure is None
    assert record.stopped == "terminated"
    assert [row["round"] for row in record.rounds] == [*range(1, 33), 100]
    data = json.loads(experiment_json(record))
    assert (data["partial"], data["stopped"]) == (True, "terminated")


def test_the_gradient_is_printed_with_all_its_digits(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command([*CHAIN, "--op", "mul", "--rounds", "24"]) == 0
    assert "gradient 16777216, as it has to be\n" in capsys.readouterr().out


def test_too_long_a_list_is_refused_and_what_is_complete_printed(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(history, "MOST_ENTRIES", 1000)
    assert run_command([*CHAIN, "--merge", "copy"]) == 1
    out, err = capsys.readouterr()
    assert " 511 " in out
    assert "1,023" not in out
    assert "stopped: the history of checkpoints would get 1,022 entries, the most is 1,000" in out
    assert err.startswith("Error: the history of checkpoints would get 1,022 entries")
    assert "hint: use fewer rounds, or merge rule `shared`" in err


@pytest.mark.long
@pytest.mark.slow
def test_ten_million_entries_are_refused_before_they_are_made(
    capsys: pytest.CaptureFixture[str],
) -> None:
    data = found(capsys, "--merge", "copy", "--rounds", "40", code=1)
    assert data["rounds"][-1]["entries"] == 2**23 - 1
    assert "16,777,214 entries, the most is 10,000,000" in data["stopped"]


def test_what_cannot_fit_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command([*CHAIN, "--rounds", "100000000000"]) == 1
    error = capsys.readouterr().err
    assert "rounds = 100000000000, merge = shared needs at least 181.9 TiB" in error
    assert "hint: use fewer --rounds, or --no-memory-check" in error


@pytest.mark.parametrize("command", ["check", "saved", "log"])
def test_other_commands_do_not_take_it(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command([command, "--workload", "chain"]) == 2
    error = capsys.readouterr().err
    assert "workload `chain` is an experiment without strategies" in error
    assert "hint: use `ckpt run --workload chain`" in error


@pytest.mark.parametrize(
    "option", [["--export", "x.json"], ["--fail-on", "time > 5%"], ["--strict"]]
)
def test_what_would_be_lost_is_refused(
    option: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    strategies = ["-s", "none", "-s", "balanced"]
    assert run_command([*CHAIN, *strategies, *option]) == 2
    assert f"{option[0]} does not take workload `chain`" in capsys.readouterr().err


def test_options_without_effect_are_warned_about(capsys: pytest.CaptureFixture[str]) -> None:
    options = ["--rounds", "2", "--layers", "3", "--reps", "9", "-s", "none", "--width", "80"]
    assert run_command([*CHAIN, *options]) == 0
    warnings = capsys.readouterr().err.splitlines()
    assert sorted(warnings) == [
        f"warning: {flag} has no effect on workload `chain`"
        for flag in ("--layers", "--reps", "--strategy")
    ]
    assert run_command([*CHAIN, *options, "--quiet"]) == 0
    assert capsys.readouterr().err == ""
    assert run_command(["run", "-n", "8", "--reps", "9", "--rounds", "3"]) == 0
    assert "--rounds has no effect on workload `silu`" in capsys.readouterr().err


def test_wrong_names_and_arguments(capsys: pytest.CaptureFixture[str]) -> None:
    for arguments, words in (
        (["--workload", "chain:3"], "takes no argument, got `3`"),
        (["--workload", "chian"], "did you mean `chain`?"),
        (["--workload", "chain", "--op", "div"], "'div' is not one of"),
        (["--workload", "chain", "--rounds", "0"], "0 is not in the range"),
    ):
        assert run_command(["run", *arguments]) == 2
        assert words in capsys.readouterr().err


def stopped_in_the_third_round(
    number: signal.Signals, out: Path, *arguments: str
) -> tuple[int, str]:
    """Exit code and stderr of a run of a million rounds that a signal reaches after two.

    stderr is a terminal, on which the command says how far it is; stdout is the file `out`.
    """
    import pty

    terminal, its_end = pty.openpty()
    command = [sys.executable, "-m", "ckptcli", *CHAIN, "--rounds", "1000000", *arguments]
    with out.open("wb") as stdout:
        process = subprocess.Popen(command, stdout=stdout, stderr=its_end)
    os.close(its_end)
    told, is_sent = b"", False
    with contextlib.suppress(OSError):  # Linux's end of a terminal's last process
        while chunk := os.read(terminal, 4096):
            told += chunk
            if not is_sent and any(int(n) >= 2 for n in re.findall(rb"(\d+)/1000000", told)):
                process.send_signal(number)
                is_sent = True
    os.close(terminal)
    return process.wait(timeout=60), told.decode()


@pytest.mark.slow
@NEEDS_TERMINALS
@pytest.mark.parametrize("op", ["mul", "add", "trg"])
def test_long_runs_stop_with_what_is_complete(op: str, tmp_path: Path) -> None:
    """What the timer of --timeout sends is sent once there is something to keep."""
    out = tmp_path / "out"
    arguments = ("--op", op, "--json", "--timeout", "1000")
    code, told = stopped_in_the_third_round(signal.SIGALRM, out, *arguments)
    assert code == 124, told
    data = json.loads(out.read_text(encoding="utf-8"))
    assert (data["partial"], data["stopped"]) == (True, "--timeout 1000 s")
    assert len(data["rounds"]) >= 1
    assert "Traceback" not in told


@NEEDS_TERMINALS
@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
@pytest.mark.slow
def test_a_signal_ends_a_run(number: signal.Signals, code: int, tmp_path: Path) -> None:
    ended, told = stopped_in_the_third_round(number, tmp_path / "out")
    assert ended == code, told
    assert "Traceback" not in told
    assert "stopped: " in (tmp_path / "out").read_text(encoding="utf-8")


@pytest.mark.long
@pytest.mark.slow
def test_a_million_rounds() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "ckptcli", *CHAIN, "--op", "add", "--rounds", "1000000", "--json"],
        capture_output=True,
        encoding="utf-8",
        timeout=600,
    )
    data = json.loads(done.stdout)
    assert (done.returncode, done.stderr) == (0, "")
    last = data["rounds"][-1]
    assert (last["round"], last["entries"], last["graphs"]) == (1_000_000,) * 3
    assert data["facts"]["gradient"] == 1_000_001.0


def record_of(rounds: int) -> ExperimentRecord:
    experiment = ChainExperiment("mul", rounds, "shared")
    return ExperimentRecord(
        workload=experiment.settings,
        title=experiment.title,
        device="Numpy(Cpu)",
        machine=read_machine(),
        version="0",
        selection="measured: all; build: one round",
        rounds=[
            {"round": n, "entries": n, "build_s": n * 1e-6, "grad_s": None}
            for n in range(1, rounds + 1)
        ],
        facts={},
        sentences=["one fact"],
        wrong=["a number"],
        stopped="interrupted",
    )


def test_the_screen() -> None:
    assert render_experiment(record_of(2), Screen(80, False, False)) == (
        "device = Numpy(Cpu), chain, op = mul, rounds = 2, merge = shared\n"
        "\n"
        "round   entries    build   grad\n"
        "-------------------------------\n"
        "    1         1   1.00us    n/a\n"
        "    2         2   2.00us    n/a\n"
        "\n"
        "measured: all\n"
        "build: one round\n"
        "\n"
        "one fact\n"
        "WRONG: a number\n"
        "stopped: interrupted; what is shown is complete\n"
    )


def test_a_long_table_is_thinned() -> None:
    text = render_experiment(record_of(40), Screen(80, False, False))
    rows = [int(number) for number in re.findall(r"^ *(\d+) +\d+ ", text, flags=re.M)]
    assert rows == [*range(1, 7), *range(27, 41)]
    assert "20 measured rounds left out here; --json has all" in text
