"""The one list of options: every option in every fold, and what adding one takes."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any, get_args

import click
import pytest
from click.shell_completion import CompletionItem, ShellComplete

from ckptcli.cli.command import OptionsCommand
from ckptcli.cli.line import Line
from ckptcli.cli.main import COMMANDS as EVERY_COMMAND, root
from ckptcli.cli.names import NAMES
from ckptcli.cli.runs import child_arguments, recorded
from ckptcli.cli.settings import checked_defaults
from ckptcli.cli.subjects.module import KIND as A_MODULE
from ckptcli.config import FoundConfig, named_config
from ckptcli.errors import UsageError
from ckptcli.options.commands import COMMANDS, options_class, options_classes
from ckptcli.options.commands.check import CheckOptions
from ckptcli.options.commands.log import LogOptions
from ckptcli.options.commands.run import RunOptions
from ckptcli.options.effects import Kind, takes, without_effect
from ckptcli.options.group import Options, group
from ckptcli.options.listing import built, changed, options_of, settings_of, values_of
from ckptcli.options.measuring import RoundOptions
from ckptcli.options.option import Option, Section, option
from ckptcli.options.subjects import EXPERIMENT, MODULE, SUBJECTS, WORKLOAD
from ckptcli.options.variables import unknown_variables, variable_of
from ckptcli.options.words import child_words, reproduction_words
from ckptcli.report.run_table import command_line
from tests.records import balanced_record, none_record, run_record

OPTIONS_OF_RUN = options_of(RunOptions)
EVERY_OPTION = [
    pytest.param(name, option, id=f"{name} {option.flag}")
    for name in COMMANDS
    for option in options_of(options_class(name))
]
NEEDED = {
    "format": ("--export", "-"),
    "scheduler": ("--on", "dask"),
    "slurm": ("--on", "slurm"),
}
"""What an option has an effect beside alone: a default of it counts nowhere else."""


@pytest.fixture(autouse=True)
def _nothing_is_set(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in list(os.environ):
        if name.startswith("CKPT_"):
            monkeypatch.delenv(name)


def another_value(option: Option) -> Any:
    """A value that the option takes and that is not its default."""
    if option.kind == "words":
        return ",".join(option.choices[:2]) or "e,f"
    if option.choices:
        return next(word for word in option.choices if word != option.default)
    if option.kind in ("integer", "number"):
        least = option.above if option.at_least is None else option.at_least
        number = max(option.default or 0, least or 0) + 1
        return number if option.kind == "integer" else float(number)
    if option.kind in ("integers", "numbers"):
        return "3,7" if option.kind == "integers" else "0.25,0.5"
    return {"boolean": True, "string": "a b", "strings": ("c", "d"), "pair": ("e", "f")}[
        option.kind
    ]


def command_of(name: str) -> OptionsCommand:
    command = import_module(f"ckptcli.cli.{name}").command
    assert isinstance(command, OptionsCommand)
    return command


def context_of(command: click.Command, name: str = "ckpt") -> click.Context:
    """As click makes it: a command keeps the help option that its first context asks for."""
    return click.Context(command, info_name=name, **command.context_settings)


def parsed(words: list[str], command: OptionsCommand | None = None) -> dict[str, Any]:
    """What the real command makes of the words, by the names of the options."""
    command = command or command_of("run")
    ctx = command.make_context("run", list(words))
    return values_of(built(command.options_class, ctx.params))


def run_options(**values: Any) -> RunOptions:
    return built(RunOptions, values)


# Every option of `ckpt run`, in a child process, in the record and in the line that reproduces.


@pytest.mark.parametrize("option", OPTIONS_OF_RUN, ids=lambda option: option.flag)
def test_a_child_process_gets_it_or_the_declaration_says_why_not(option: Option) -> None:
    value = another_value(option)
    got = parsed(child_arguments(run_options(**{option.name: value})))[option.name]
    if option.not_in_child:
        assert got == option.default, option.not_in_child
    else:
        assert got == value


@pytest.mark.parametrize("option", OPTIONS_OF_RUN, ids=lambda option: option.flag)
def test_the_record_has_it(option: Option) -> None:
    value = another_value(option)
    kept = recorded(run_options(**{option.name: value}))[option.name]
    assert kept == (list(value) if isinstance(value, tuple) else value)


@pytest.mark.parametrize("option", OPTIONS_OF_RUN, ids=lambda option: option.flag)
def test_the_line_that_reproduces_names_it_or_the_declaration_says_why_not(option: Option) -> None:
    values = {option.name: another_value(option)}
    words = reproduction_words(OPTIONS_OF_RUN, values)
    assert (words == []) == bool(option.not_reproduced)
    if words:
        assert parsed(words)[option.name] == values[option.name]


def test_the_keys_of_a_record_are_those_that_saved_files_have() -> None:
    """As version 1 has had them; there may be more, never fewer."""
    assert set(recorded(run_options())) >= {
        *("as_json", "backend_name", "batch", "beta", "chi", "color", "conditions", "config_path"),
        *("device_name", "dtype", "engine_names", "export_paths", "force", "format_name", "layers"),
        *("max_time_s", "merge", "module_text", "n", "no_reference", "op", "perturb_text"),
        *("processes", "quiet", "reps", "rounds", "seed", "steps", "strategy_texts", "strict"),
        *("svd_eps", "threads", "threshold_percent", "timeout_s", "verbose", "warmup", "width"),
        "workload_text",
    }


def test_a_record_has_the_settings_that_its_workload_takes_alone() -> None:
    silu = Kind(WORKLOAD, "silu", frozenset({"layers", "n"}))
    kept = recorded(run_options(), lambda option: takes(silu, option))
    assert {"layers", "n", "seed", "threads", "workload_text"} <= set(kept)
    assert not {"op", "chi", "merge", "steps"} & set(kept)


def test_the_record_of_a_module_has_no_workload() -> None:
    kept = recorded(run_options(), lambda option: takes(A_MODULE, option))
    assert {"module_text", "seed", "reps"} <= set(kept)
    assert not {"workload_text", "layers", "n", "op"} & set(kept)


def test_the_line_of_a_record_carries_its_settings() -> None:
    config = recorded(run_options(threads=3, perturb_text="ulp", no_reference=True, warmup=4))
    line = command_line(run_record(none_record(), balanced_record(), config=config)) or ""
    for words in ("--threads 3", "--perturb-replay ulp", "--no-reference", "--warmup 4"):
        assert f" {words}" in line
    assert "--max-time" not in line
    assert "--rounds" not in line  # of the chain, which the workload does not have


def test_the_line_of_a_module_names_it_and_no_workload() -> None:
    config = recorded(run_options(module_text="net.py:make", engine_names=("torch",), threads=1))
    workload = {"name": "module", "title": "net.py:make"}
    record = run_record(none_record(), balanced_record(), config=config, workload=workload)
    line = command_line(record) or ""
    assert " --module net.py:make " in line
    assert " --seed 0 " in line
    for flag in ("--workload", "--layers", "--backend"):
        assert flag not in line


def test_a_child_gets_its_share_of_the_rounds_or_of_their_time() -> None:
    asked = parsed(child_arguments(run_options(processes=4, reps=10)))
    assert (asked["reps"], asked["processes"]) == (3, 1)
    limited = parsed(child_arguments(run_options(processes=4, max_time_s=2.0)))
    assert (limited["reps"], limited["max_time_s"]) == (None, 0.5)
    assert limited["as_json"]
    assert limited["no_memory_check"]


# Every option of every command, on the command line and in its help.


@pytest.mark.parametrize(("name", "option"), EVERY_OPTION)
def test_a_flag_its_variable_and_its_key_give_the_same_value(
    name: str, option: Option, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    command, value = command_of(name), another_value(option)
    arguments = ["x"] * (2 if name == "compare" else name in ("show", "ops"))
    arguments += NEEDED.get(option.key, ())
    if option.name == "config_path":
        (tmp_path / "a b").write_text("")
    flags = flags_of(option, value)
    assert parsed([*arguments, *flags], command)[option.name] == value
    if option.not_in_settings:
        assert option.key not in settings_of(options_classes())
        return
    between = ";" if option.has_blanks else " "
    monkeypatch.setenv(
        variable_of(option.key), between.join(value) if isinstance(value, tuple) else f"{value}"
    )
    assert parsed(arguments, command)[option.name] == value
    monkeypatch.delenv(variable_of(option.key))
    if option.kind == "words":  # a burn.toml serves every command, and a sweep alone takes several
        value = value.partition(",")[0]
    (tmp_path / "burn.toml").write_text(f"[ckpt]\n{option.key} = {toml(value)}\n")
    named = ["--config", "burn.toml"] if option.not_from_found else []
    assert parsed([*arguments, *named], command)[option.name] == value


def flags_of(option: Option, value: Any) -> list[str]:
    if option.kind == "boolean":
        return [option.flag]
    if option.kind == "strings":
        return [word for item in value for word in (option.flag, item)]
    return [option.flag, *value] if option.kind == "pair" else [option.flag, str(value)]


def toml(value: Any) -> str:
    if isinstance(value, tuple):
        return f"[{', '.join(map(toml, value))}]"
    if isinstance(value, bool):
        return str(value).lower()
    return f'"{value}"' if isinstance(value, str) else str(value)


def sections_of(name: str) -> set[str]:
    return {declared.section for declared in options_of(options_class(name))}


@pytest.mark.parametrize("name", COMMANDS)
def test_help_lists_each_option_once_in_its_section(name: str) -> None:
    command = command_of(name)
    whole = command.get_help(context_of(command, name))
    text = whole[min(whole.index(f"\n{section}:\n") for section in sections_of(name)) :]
    titles = [f"\n{section}:\n" for section in get_args(Section) if f"\n{section}:\n" in text]
    places = [text.index(title) for title in titles]
    assert places == sorted(places)
    for one in options_of(options_class(name)):
        begin = text.index(f"\n{one.section}:\n")
        end = min([place for place in places if place > begin], default=len(text))
        row = f"  -{one.short}, {one.flag}" if one.short else f"  {one.flag}"
        assert len(re.findall(rf"\n{re.escape(row)}(?![\w-])", text)) == 1
        assert f"\n{row}" in text[begin:end]


def test_the_first_screen_of_run_says_what_to_run() -> None:
    command = command_of("run")
    first = command.get_help(context_of(command, "run")).splitlines()[:24]
    assert any(line.startswith("What to run:") for line in first)
    for flag in ("--strategy", "--workload", "--layers"):
        assert any(flag in line for line in first)


@pytest.mark.parametrize("name", ["run", "log", "check", "saved"])
def test_what_makes_sense_everywhere_is_everywhere(name: str) -> None:
    keys = {option.key for option in options_of(options_class(name))}
    assert {"width", "color", "threads", "no-memory-check", "config", "quiet", "json"} <= keys


def test_force_replaces_files_and_nothing_else() -> None:
    having = {
        name
        for name in COMMANDS
        for option in options_of(options_class(name))
        if option.name == "force"
    }
    assert having == {"run", "show", "compare", "config", "plan", "sweep"}
    (force,) = [option for option in OPTIONS_OF_RUN if option.name == "force"]
    assert force.help == "Replace files that exist."


# Completion.


def completions(*words: str, incomplete: str = "") -> list[str]:
    shell = ShellComplete(root, {}, "ckpt", "_CKPT_COMPLETE")
    return [item.value for item in shell.get_completions(list(words), incomplete)]


def test_a_difference_of_logs_completes_strategies() -> None:
    assert "balanced" in completions("log", "--diff")
    assert "remat" in completions("log", "--diff", "none", incomplete="r")


def parameters() -> Iterator[Any]:
    for name in EVERY_COMMAND:
        command = import_module(f"ckptcli.cli.{name}").command
        for param in command.params:
            yield pytest.param(command, param, id=f"{name} {param.name}")


@pytest.mark.parametrize(("command", "param"), list(parameters()))
def test_every_completion_can_be_asked(command: click.Command, param: click.Parameter) -> None:
    items = param.shell_complete(context_of(command), "")
    assert all(isinstance(item, CompletionItem) for item in items)
    declared = getattr(param, "declaration", None)
    if declared is not None and declared.names in NAMES:
        assert [item.value for item in items] == list(NAMES[declared.names]())


@pytest.mark.parametrize("kind", NAMES)
def test_names_are_those_of_an_option(kind: str) -> None:
    assert any(option.names == kind for cls in options_classes() for option in options_of(cls))
    assert len(NAMES[kind]()) > 1


# What an option means for a subject.

SILU = Kind(WORKLOAD, "workload `silu`", frozenset({"layers", "n"}))
CHAIN = Kind(EXPERIMENT, "workload `chain`", frozenset({"rounds"}))


@pytest.mark.parametrize("option", OPTIONS_OF_RUN, ids=lambda option: option.flag)
@pytest.mark.parametrize("subject", [SILU, A_MODULE, CHAIN], ids=lambda subject: subject.name)
def test_what_is_given_has_an_effect_or_is_told(option: Option, subject: Kind) -> None:
    if takes(subject, option):
        assert without_effect([option], {option.name}, subject) == []
    elif subject.name in option.refused_by:
        with pytest.raises(UsageError, match=f"^{option.flag} does not take {subject.title}"):
            without_effect([option], {option.name}, subject)
    else:
        told = without_effect([option], {option.name}, subject)
        assert told == [f"{option.flag} has no effect on {subject.title}"]
    assert without_effect([option], (), subject) == []


def test_every_subject_that_an_option_names_is_one() -> None:
    for one in OPTIONS_OF_RUN:
        assert one.subjects | one.refused_by <= SUBJECTS
        assert not one.subjects & one.refused_by


def test_a_workload_says_itself_which_sizes_it_takes() -> None:
    flags = {option.flag for option in OPTIONS_OF_RUN if takes(SILU, option)}
    assert {"--layers", "--n", "--seed", "--export"} <= flags
    assert not {"--chi", "--rounds", "--batch"} & flags


# Defaults of a command's own.


def test_a_command_has_defaults_of_its_own() -> None:
    assert (RunOptions().workload.layers, LogOptions().workload.layers) == (8, 2)
    assert CheckOptions().workload.n == 32
    assert parsed([], command_of("check"))["layers"] == 4
    assert "default: 4" in context_of(command_of("check")).get_help()


@pytest.mark.parametrize("name", COMMANDS)
def test_values_come_back(name: str) -> None:
    cls = options_class(name)
    values = {option.name: another_value(option) for option in options_of(cls)}
    assert values_of(built(cls, values)) == values
    assert built(cls, {}) == cls()


def test_options_do_not_change() -> None:
    options = RoundOptions(reps=3)
    assert options == changed(RoundOptions(), reps=3) != RoundOptions()
    assert hash(options) == hash(changed(RoundOptions(), reps=3))
    assert "reps=3" in repr(options)
    with pytest.raises(AttributeError, match="cannot change"):
        options.reps = 4  # type: ignore[misc]
    with pytest.raises(AttributeError, match="cannot change"):
        del options.reps
    with pytest.raises(TypeError, match="RoundOptions has no option rep"):
        RoundOptions(rep=3)  # type: ignore[call-arg]
    assert options.reps == 3


class TwiceOptions(Options):
    rounds: RoundOptions = group(RoundOptions)
    again: RoundOptions = group(RoundOptions)


def test_an_option_that_is_declared_twice_is_refused() -> None:
    with pytest.raises(AssertionError, match="stands for two options"):
        options_of(TwiceOptions)


# Adding one.


class PatienceOptions(Options):
    patience: int = option(
        3,
        "How long to wait.",
        section="How to measure",
        short="p",
        at_least=1,
        names="strategy",
        subjects=frozenset({WORKLOAD}),
        refused_by=frozenset({MODULE}),
    )


class WaitingOptions(Options):
    rounds: RoundOptions = group(RoundOptions, warmup={"default": 7})
    patience: PatienceOptions = group(PatienceOptions)


def test_a_field_is_all_that_a_new_option_takes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[tuple[WaitingOptions, Line]] = []
    command = OptionsCommand(
        "wait", WaitingOptions, callback=lambda options, line: seen.append((options, line))
    )
    monkeypatch.setitem(COMMANDS, "wait", f"{__name__}:WaitingOptions")

    # The flag, its bounds, its help, its completion.
    command.main(["-p", "5"], standalone_mode=False)
    options, line = seen.pop()
    assert (options.patience.patience, options.rounds.warmup) == (5, 7)
    assert line.given == {"patience"}
    with pytest.raises(click.BadParameter, match="0 is not in the range"):
        command.main(["--patience", "0"], standalone_mode=False)
    text = context_of(command).get_help()
    assert "-p, --patience N" in text.partition("How to measure:")[2]
    param = next(param for param in command.params if param.name == "patience")
    assert param.shell_complete(context_of(command), "bal")[0].value == "balanced"

    # The environment and `[ckpt]`.
    monkeypatch.setenv("CKPT_PATIENCE", "6")
    keys = settings_of(options_classes())
    assert list(unknown_variables(os.environ, keys)) == []
    command.main([], standalone_mode=False)
    assert seen.pop()[0].patience.patience == 6
    monkeypatch.delenv("CKPT_PATIENCE")
    (tmp_path / "burn.toml").write_text("[ckpt]\npatience = 8\n")
    command.main([], standalone_mode=False)
    options, line = seen.pop()
    assert (options.patience.patience, line.origins["patience"]) == (8, "file")
    (tmp_path / "burn.toml").write_text("[ckpt]\npatience = 0\n")
    (wrong,) = checked_defaults(found_there(tmp_path), keys).wrong
    assert "which `--patience` does not take" in wrong.reason

    # A child process, the record, the line that reproduces, and what it means for a subject.
    listed, values = options_of(WaitingOptions), values_of(options)
    assert child_words(listed, values) == ["--patience", "8"]
    assert "--patience 8" in " ".join(reproduction_words(listed, values))
    assert without_effect(listed, {"patience"}, CHAIN) == [
        "--patience has no effect on workload `chain`"
    ]
    with pytest.raises(UsageError, match="--patience does not take a module"):
        without_effect(listed, {"patience"}, A_MODULE)


def found_there(directory: Path) -> FoundConfig:
    """The file there, as one that was found: what is wrong in it is told."""
    return replace(named_config(directory / "burn.toml"), named=False)
