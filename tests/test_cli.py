"""The command in this process: flags, text, exit codes."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from ckptcli import units
from ckptcli.backends.registry import libraries
from ckptcli.cli.main import run_command
from ckptcli.measure.machine import available_bytes
from ckptcli.peers.base import engines
from ckptcli.workloads.registry import PROGRAM, workload_names

DATA = Path(__file__).parent / "data"
SMALL = ("--layers", "2", "--n", "16", "--reps", "2")


@dataclass(frozen=True)
class Result:
    code: int
    out: str
    err: str


Command = Callable[..., Result]


@pytest.fixture
def ckpt(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Command:
    monkeypatch.chdir(tmp_path)

    def run(*arguments: str) -> Result:
        code = run_command(arguments)
        captured = capsys.readouterr()
        return Result(code, captured.out, captured.err)

    return run


@pytest.mark.parametrize("strategy", ["none", "balanced"])
def test_log_prints_burns_lines_and_nothing_else(ckpt: Command, strategy: str) -> None:
    golden = (DATA / f"silu_2x64_{strategy}_full.log").read_text()
    assert ckpt("log", "-s", strategy, "--level", "full") == Result(0, golden, "")


def test_log_is_the_same_at_any_size_of_the_same_graph(ckpt: Command) -> None:
    assert ckpt("log", "--n", "3", "--dtype", "float64", "--seed", "5").out == ckpt("log").out


def test_medium_prints_what_basic_prints(ckpt: Command) -> None:
    basic = ckpt("log", "--level", "basic").out
    assert basic == ckpt("log", "--level", "medium").out
    assert len(basic.splitlines()) == 9
    assert "execute" not in basic


def test_explain_marks_its_own_lines_and_keeps_burns(ckpt: Command) -> None:
    lines = ckpt("log", "--explain").out.splitlines()
    burn = [line for line in lines if not line.startswith("# ")]
    assert "\n".join(burn) + "\n" == ckpt("log").out
    assert lines[0] == "# graph: 10 nodes, 3 of them leaves; 7 backward steps; strategy balanced"
    assert lines[-1] == (
        "# summary: 9 retrievals, 2 of more than one node; 3 nodes recomputed (1 mul, 2 sigmoid)"
    )
    node = next(line for line in lines if line.startswith("# node 5 "))
    assert node == (
        "# node 5 mul(3, 4) [64, 64] float32 16.0 KiB: recomputed, 1 use, named h, "
        "needed by 6 (matmul)"
    )


def test_explain_names_the_constant_and_the_dropped_backup(ckpt: Command, tmp_path: Path) -> None:
    program = (
        '{"ops": [{"op": "leaf", "req": true, "data": [1, 2, 3, 4]}, {"op": "leaf", "data": '
        '[1, 2, 3, 4]}, {"op": "mul", "in": [0, 1]}, {"op": "add", "in": [2, 2]}], "root": 3}'
    )
    (tmp_path / "g.json").write_text(program)
    out = ckpt("log", "--workload", "graph:g.json", "--explain").out
    assert "node 2 mul(0, 1) [2, 2] float64 32 B: not needed, 2 backups dropped unused; " in out
    assert "memory bound, but held where needed: parent 1 is a constant" in out


@pytest.mark.slow
def test_log_of_a_graph_file_gives_one_object_a_case(ckpt: Command) -> None:
    lines = (DATA / "burn_conformance.jsonl").read_text().splitlines()
    result = ckpt(
        "log", "--workload", f"graph:{DATA / 'burn_conformance.jsonl'}", "--level", "full", "--json"
    )
    printed = [json.loads(line) for line in result.out.splitlines()]
    assert len(printed) == len(lines) == 400
    for index, (got, line) in enumerate(zip(printed, lines)):
        case = json.loads(line)
        assert got["case"] == index
        assert got["strategy"] == case["strategy"]
        assert got["log"] == case["log"]
        assert set(got["gradients"]) == set(case["grads"])
        for leaf, values in case["grads"].items():
            assert got["gradients"][leaf] == pytest.approx(values, rel=1e-12, abs=1e-300)
    assert result.err.count("gives no gradients") == 74


@pytest.mark.slow
def test_a_strategy_on_the_command_line_overrides_the_cases(ckpt: Command) -> None:
    path = DATA / "burn_conformance.jsonl"
    out = ckpt("log", "--workload", f"graph:{path}#0", "-s", "balanced", "--json").out
    assert json.loads(out)["strategy"] == "balanced"


def test_run_prints_the_seeds_lines_and_one_table(ckpt: Command) -> None:
    result = ckpt("run", *SMALL)
    lines = result.out.splitlines()
    assert result.code == 0
    rep = re.compile(
        r"rep \d: after forward in_use = +8\.0 KiB, forward +[\d.]+(ms|µs|s), "
        r"backward +[\d.]+(ms|µs|s), sum\(grad w0\) = -?\d+\.\d{4}"
    )
    median = r"reps 1\.\.2: median forward \S+, median backward \S+"
    for name in ("Disabled", "Balanced"):
        device = f"device = Device<Autodiff {{ device: Numpy(Cpu), checkpointing: {name} }}>"
        first = lines.index(f"{device}, n = 16, layers = 2")
        assert lines[first + 1] == "params + input          in_use =     3.0 KiB"
        assert lines[first + 2].startswith("after forward           in_use = ")
        assert re.fullmatch(median, lines[first + 3])
    assert lines[1].startswith("none: reference: peak ")
    assert lines[2].startswith("balanced: effective: peak ")
    verbose = ckpt("run", *SMALL, "-v").out.splitlines()
    assert sum(rep.fullmatch(line) is not None for line in verbose) == 3
    assert sum("vs reference" in line for line in lines) == 1
    assert any(line.startswith("  recomputes 1 mul, 2 sigmoid: ") for line in lines)
    assert any(line.startswith("balanced: effective: peak ") for line in lines)


def test_json_is_one_object_with_every_figure(ckpt: Command) -> None:
    result = ckpt("run", *SMALL, "--json")
    record = json.loads(result.out)
    assert record["schema"] == "ckpt.run/1"
    none, balanced = record["strategies"]
    tensor = 16 * 16 * 4
    assert none["params_input_bytes"] == 3 * tensor
    assert (none["saved_tensors"], none["saved_bytes"]) == (5, 5 * tensor)
    assert (balanced["saved_tensors"], balanced["saved_bytes"]) == (2, 2 * tensor)
    assert none["after_forward_bytes"] == 8 * tensor + 4
    assert none["after_backward_bytes"] == balanced["after_backward_bytes"] == 5 * tensor + 4
    assert balanced["recomputed_nodes"] == 3
    assert balanced["recomputed_by_op"] == {"mul": 1, "sigmoid": 2}
    assert none["grad_sha256"] == balanced["grad_sha256"]
    assert none["loss"] == balanced["loss"]
    for phase in ("forward_s", "backward_s", "total_s"):
        times = none[phase]
        assert len(times["samples"]) == 2
        assert min(times["samples"]) <= times["median"] <= max(times["samples"])
    live = balanced["peak_live"]
    assert live["total_bytes"] == balanced["ledger_peak_backward_bytes"]
    assert sum(entry["bytes"] for entry in live["largest"]) == live["total_bytes"]
    keys = {"node", "op", "shape", "bytes", "why", "source", "module", "held_by"}
    assert set(live["largest"][0]) == keys
    assert {"workload", "device", "machine", "seed", "warnings"} <= set(record)


def test_one_strategy_runs_none_as_the_marked_reference(ckpt: Command) -> None:
    record = json.loads(ckpt("run", *SMALL, "-s", "balanced", "--json").out)
    marks = [(s["strategy"], s["reference"]) for s in record["strategies"]]
    assert marks == [("none", True), ("balanced", False)]


def test_no_reference_drops_it(ckpt: Command) -> None:
    record = json.loads(ckpt("run", *SMALL, "-s", "balanced", "--no-reference", "--json").out)
    assert [s["strategy"] for s in record["strategies"]] == ["balanced"]


def test_output_stays_in_the_order_of_the_command_line(ckpt: Command) -> None:
    record = json.loads(ckpt("run", *SMALL, "-s", "balanced", "-s", "none", "--json").out)
    marks = [(s["strategy"], s["reference"]) for s in record["strategies"]]
    assert marks == [("balanced", False), ("none", False)]


def test_the_same_seed_is_the_same_network_whatever_the_batch_of_runs(ckpt: Command) -> None:
    def figures(*arguments: str) -> tuple[float, str]:
        record = json.loads(ckpt("run", *SMALL, *arguments, "--json").out)
        return record["strategies"][0]["loss"], record["strategies"][0]["grad_sha256"]

    assert figures() == figures("--reps", "3", "--warmup", "0")
    assert figures() != figures("--seed", "1")


def test_a_batch_smaller_than_n(ckpt: Command) -> None:
    record = json.loads(ckpt("run", *SMALL, "--batch", "4", "--json").out)
    assert record["strategies"][0]["params_input_bytes"] == (2 * 256 + 4 * 16) * 4
    assert record["workload"]["batch"] == 4


def test_run_on_one_case_of_a_graph_file(ckpt: Command) -> None:
    path = DATA / "burn_conformance.jsonl"
    record = json.loads(ckpt("run", "--workload", f"graph:{path}#2", "--reps", "1", "--json").out)
    assert record["strategies"][0]["grad_sum_w0"] is None
    assert record["strategies"][0]["loss"] == record["strategies"][1]["loss"]


@pytest.mark.slow
def test_run_on_a_graph_file_of_one_case_with_a_leaf_root(ckpt: Command, tmp_path: Path) -> None:
    leaf = '{"ops": [{"op": "leaf", "req": true, "data": [1, 2]}], "root": 0}'
    (tmp_path / "leaf.json").write_text(leaf)
    record = json.loads(ckpt("run", "--workload", "graph:leaf.json", "--json").out)
    assert record["strategies"][1]["saved_tensors"] == 0


def test_a_loss_that_is_not_finite_is_null_and_said(ckpt: Command, tmp_path: Path) -> None:
    program = (
        '{"ops": [{"op": "leaf", "req": true, "data": [1000, 1]}, {"op": "exp", "in": [0]}], '
        '"root": 1}'
    )
    (tmp_path / "inf.json").write_text(program)
    result = ckpt("run", "--workload", "graph:inf.json", "--reps", "1", "--json")
    record = json.loads(result.out)
    assert record["strategies"][0]["loss"] is None
    assert any("the loss is inf" in warning for warning in record["warnings"])
    assert any(warning.startswith("strategies[0].loss is inf") for warning in record["warnings"])
    assert "the loss is inf" in result.err
    assert ckpt("run", "--workload", "graph:inf.json", "--reps", "1", "-q").err == ""


def test_an_untracked_root_runs_with_a_warning(ckpt: Command, tmp_path: Path) -> None:
    program = '{"ops": [{"op": "leaf", "data": [1, 2]}, {"op": "exp", "in": [0]}], "root": 1}'
    (tmp_path / "constant.json").write_text(program)
    result = ckpt("run", "--workload", "graph:constant.json", "--reps", "1")
    assert result.code == 0
    assert result.err.count("gives no gradients") == 1


def test_an_enabled_logger_gets_one_pass_a_strategy(ckpt: Command, tmp_path: Path) -> None:
    (tmp_path / "burn.toml").write_text(
        '[autodiff.logger]\nlevel = "full"\nfile = "out/log.txt"\nstdout = true\n'
    )
    lines = ckpt("run", "--reps", "1", "--layers", "2", "--n", "64").out
    golden = "".join(
        f"device = Device<Autodiff {{ device: Numpy(Cpu), checkpointing: {title} }}>, "
        f"n = 64, layers = 2\n{(DATA / f'silu_2x64_{name}_full.log').read_text()}"
        for name, title in (("none", "Disabled"), ("balanced", "Balanced"))
    )
    assert lines.startswith(golden)
    assert (tmp_path / "out" / "log.txt").read_text() == golden


def test_with_json_log_lines_leave_stdout_alone(ckpt: Command, tmp_path: Path) -> None:
    (tmp_path / "burn.toml").write_text('[autodiff.logger]\nlevel = "basic"\nstdout = true\n')
    result = ckpt("run", *SMALL, "--json")
    record = json.loads(result.out)
    assert "retrieve_node_output NodeId { value: 6 }" in result.err
    assert any("log lines for stdout went to stderr" in text for text in record["warnings"])


def test_log_prints_once_whatever_the_file_says_of_stdout(ckpt: Command, tmp_path: Path) -> None:
    (tmp_path / "burn.toml").write_text(
        '[autodiff.logger]\nlevel = "basic"\nfile = "log.txt"\nstdout = true\n'
    )
    out = ckpt("log").out
    assert len(out.splitlines()) == 9
    assert (tmp_path / "log.txt").read_text() == out
    full = ckpt("log", "--level", "full").out
    assert (tmp_path / "log.txt").read_text() == out + full


def test_a_bad_file_found_by_search_is_reported_and_skipped(ckpt: Command, tmp_path: Path) -> None:
    (tmp_path / "burn.toml").write_text('[autodiff.logger]\nlevel = "loud"\n')
    result = ckpt("log", "--level", "basic")
    assert result.code == 0
    assert len(result.out.splitlines()) == 9
    assert "which doesn't have the right format" in result.err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("run", "-s", "balancd"), "did you mean `balanced`?"),
        (("run", "-s", "balanced:3"), "strategy `balanced` takes no arguments"),
        (("run", "-s", "none", "-s", "none"), "strategy `none` is given twice"),
        (("run", "--workload", "silo"), "did you mean `silu`?"),
        (("run", "--workload", "silu:3"), "workload `silu` takes no argument"),
        (("run", "--workload", "graph"), "workload `graph` needs a file"),
        (("run", "--workload", f"graph:{DATA}/burn_conformance.jsonl"), "stands for 400 programs"),
        (("run", "--workload", f"graph:{DATA}/burn_conformance.jsonl#400"), "no case `400`"),
        (("run", "--workload", "graph:absent.json"), "cannot read graph file `absent.json`"),
        (("run", "--config", "absent.toml"), "config file `absent.toml` does not exist"),
        (("log", "--level", "ful"), "did you mean `full`?"),
        (("run", "--layers", "0"), "0 is not in the range x>=1"),
        (("run", "--n", "0"), "0 is not in the range x>=1"),
        (("run", "--reps", "0"), "0 is not in the range x>=1"),
        (("run", "--batch", "0"), "0 is not in the range x>=1"),
        (("run", "--dtype", "int8"), "'int8' is not one of"),
        (("rum",), "unknown command `rum`"),
    ],
)
def test_bad_input_ends_with_2_and_one_message(
    ckpt: Command, tmp_path: Path, arguments: tuple[str, ...], message: str
) -> None:
    result = ckpt(*arguments)
    assert result.code == 2
    assert message in result.err
    assert result.out == ""
    assert "Traceback" not in result.err
    assert list(tmp_path.iterdir()) == []


def test_a_wrong_value_in_a_named_config_names_the_key(ckpt: Command, tmp_path: Path) -> None:
    (tmp_path / "my.toml").write_text('[autodiff.logger]\nlevel = "ful"\n')
    result = ckpt("log", "--config", "my.toml")
    assert result.code == 2
    assert "autodiff.logger.level" in result.err
    (tmp_path / "my.toml").write_text("[autodiff.logger]\nlevel = \n")
    result = ckpt("log", "--config", "my.toml")
    assert result.code == 2
    assert "line 2, column 9" in result.err


def test_a_network_that_cannot_fit_is_refused_before_allocation(ckpt: Command) -> None:
    free = available_bytes()
    result = ckpt("run", "--n", "1000000")
    assert result.code == 1
    assert "needs at least" in result.err
    assert free is None or "are available" in result.err


def test_options_without_effect_are_said(ckpt: Command) -> None:
    path = DATA / "burn_conformance.jsonl"
    result = ckpt("log", "--workload", f"graph:{path}#0", "--layers", "3")
    assert "--layers has no effect on workload `graph`" in result.err


@pytest.mark.parametrize(
    ("now", "before", "text"),
    [
        (600, 1000, "600 B instead of 1000 B (-40 %)"),
        (999_999, 1_000_000, "(under 0.1 %)"),
        (998_000, 1_000_000, "(-0.2 %)"),
        (1, 1_000_000, "(-99.9 %)"),
        (0, 1000, "0 B instead of 1000 B (-100 %)"),
        (5, 5, "the same 5 B"),
    ],
)
def test_a_change_says_neither_nothing_nor_everything(now: int, before: int, text: str) -> None:
    assert units.change(now, before).endswith(text)


def test_strategies_lists_the_registry(ckpt: Command) -> None:
    lines = ckpt("strategies").out.splitlines()
    names = [line.split()[0] for line in lines if not line.startswith(" ")]
    assert names == ["none", "balanced", "budget", "plan", "remat", "revolve", "segments", "sqrt"]
    assert any("remat[:every=K][,policy=P][,names=a+b][,last=plain]" in line for line in lines)


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_scripts(ckpt: Command, shell: str) -> None:
    assert "_CKPT_COMPLETE" in ckpt("completion", shell).out


@pytest.mark.parametrize("command", [(), ("run",), ("log",), ("strategies",), ("completion",)])
def test_help_everywhere(ckpt: Command, command: tuple[str, ...]) -> None:
    result = ckpt(*command, "-h")
    assert (result.code, result.err) == (0, "")
    assert result.out.startswith("Usage: ckpt")


def test_colour_follows_flag_then_environment(
    ckpt: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert "\x1b[" in ckpt("run", *SMALL).out
    assert "\x1b[" not in ckpt("run", *SMALL, "--color", "never").out
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b[" not in ckpt("run", *SMALL).out
    assert "\x1b[" in ckpt("run", *SMALL, "--color", "always").out


@pytest.mark.parametrize(
    "command", [("check",), ("saved",), ("log", "--explain"), ("log", "--diff", "none", "balanced")]
)
def test_lines_of_our_own_fit_the_width(ckpt: Command, command: tuple[str, ...]) -> None:
    wide, narrow = ckpt(*command).out, ckpt(*command, "--width", "60").out
    own = [line for line in narrow.splitlines() if not line.startswith(BURNS)]
    assert max(map(len, own)) <= 60 < max(map(len, wide.splitlines()))
    if command != ("saved",):  # whose table takes words apart
        words = {word for line in narrow.splitlines() for word in line.split()}
        assert set(wide.split()) <= words
    burn = [line for line in wide.splitlines() if line.startswith(BURNS)]
    assert burn == [line for line in narrow.splitlines() if line.startswith(BURNS)]


BURNS = ("retrieve_node_output", "execute_retro_forward")


@pytest.mark.parametrize("command", [("check",), ("saved",), ("log", "--explain")])
def test_colour_is_asked_for_everywhere(ckpt: Command, command: tuple[str, ...]) -> None:
    plain = ckpt(*command, "--color", "never").out
    styled = ckpt(*command, "--color", "always").out
    assert "\x1b[" in styled
    unstyled = re.sub(r"\x1b\[[0-9;]*m", "", styled)
    assert [line.rstrip() for line in unstyled.splitlines()] == plain.splitlines()
    assert plain == ckpt(*command).out


@pytest.mark.parametrize("command", ["check", "saved", "log"])
def test_threads_everywhere_change_nothing_else(ckpt: Command, command: str) -> None:
    assert ckpt(command, "--threads", "1") == ckpt(command)


def test_two_results_for_stdout_are_refused(ckpt: Command, tmp_path: Path) -> None:
    both = ("--json", "--export", "-", "--format", "csv", "--export", "a.csv")
    result = ckpt("run", *SMALL, *both)
    assert (result.code, result.out) == (2, "")
    assert "Error: --json and `--export -` both print on stdout" in result.err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("command", ["log", "saved", "check"])
def test_force_is_of_files_alone(ckpt: Command, command: str) -> None:
    assert re.search("No such option:? '?--force", ckpt(command, "--force").err)
    assert ckpt(command, "-q", "--no-memory-check").code == 0


def test_threads_are_set_and_recorded(ckpt: Command) -> None:
    record = json.loads(ckpt("run", *SMALL, "--threads", "1", "--json").out)
    assert record["machine"]["blas_threads"] in (1, None)


def test_environment_variables_of_the_blas_are_recorded(
    ckpt: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENBLAS_VERBOSE", "0")
    record = json.loads(ckpt("run", *SMALL, "--json").out)
    assert record["machine"]["openblas_variables"]["OPENBLAS_VERBOSE"] == "0"
    assert record["machine"]["cores"] >= 1
    assert os.environ["OPENBLAS_VERBOSE"] == "0"


def test_a_difference_of_two_logs_shows_where_the_counts_differ(ckpt: Command) -> None:
    lines = ckpt("log", "--diff", "none", "balanced").out.splitlines()
    assert lines[-1] == "9 of 9 retrievals ask for the same value in the same order"
    rows = {tuple(line.split()[:4]): line.split()[4:6] for line in lines[1:-1]}
    assert rows[("5", "(mul)", "6", "(matmul)")] == ["1", "3"]
    assert sum(counts[0] != counts[1] for counts in rows.values()) == 2
    assert lines[4].endswith("by way of 3, 4, 5")


def test_the_help_of_a_device_names_every_one(ckpt: Command) -> None:
    text = " ".join(ckpt("run", "--help").out.split())
    for library in libraries().values():
        for name in library.device_names:
            assert re.search(rf"Where it computes: [^.]*\b{name}\b", text)


def test_a_wrong_name_lists_all(ckpt: Command) -> None:
    for option, names in (
        ("--workload", workload_names()),
        ("--engine", ["ckpt", *engines()]),
        ("--backend", list(libraries())),
    ):
        told = ckpt("run", option, "qqqqqqqq").err
        forms = ["FILE.py:MAKE" if name == PROGRAM else name for name in names]
        assert f"known: {', '.join(sorted(forms))}\n" in told


@pytest.mark.slow
def test_the_seed_has_an_effect_on_every_workload(ckpt: Command) -> None:
    """The order of rounds and the directions of `check` follow from it."""
    workload = f"graph:{DATA / 'burn_conformance.jsonl'}#0"
    told = ckpt("check", "--workload", workload, "--seed", "3", "--chi", "3").err
    assert "--chi has no effect" in told
    assert "--seed has no effect" not in told


def test_a_missing_choice_lists_all_on_its_line(ckpt: Command) -> None:
    found = ckpt("completion")
    assert found.code == 2
    assert found.err.endswith("Choose from: bash, zsh, fish\n")


def test_without_times_no_ratio_and_no_round_is_told(ckpt: Command) -> None:
    out = ckpt("run", "-n", "4", "-l", "1", "--memory-only").out
    assert "1.00x" not in out
    assert "seed 0; no times, as asked" in out


@pytest.mark.parametrize("command", ["compare", "show", "ops"])
def test_each_line_of_the_options_says_something(ckpt: Command, command: str) -> None:
    other = ckpt(command, "--help").out.partition("Other:")[2]
    lines = [line.split() for line in other.splitlines() if line.startswith("  -")]
    assert other.lstrip().startswith("--config")
    assert all(len(line) > 1 for line in lines)
