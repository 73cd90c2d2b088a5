"""Every word of the output is explained."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, get_args

import pytest

from ckptcli.checkpoint.strategies.registry import registry
from ckptcli.cli.main import run_command
from ckptcli.measure.conditions import EXACT, TIMES
from ckptcli.measure.json_schema import run_schema
from ckptcli.measure.record import RunRecord
from ckptcli.measure.record_json import record_object
from ckptcli.measure.rounds import Plan
from ckptcli.measure.statistics import TimeVerdict, describe
from ckptcli.profiling.profile import profile
from ckptcli.report.aliases import ALIASES
from ckptcli.report.compiled_table import COLUMNS as OF_PROGRAMS
from ckptcli.report.console import render_run
from ckptcli.report.distribution import _rows
from ckptcli.report.glossary import GLOSSARY, define, defined_terms
from ckptcli.report.looks import WORDS
from ckptcli.report.run_table import COLUMNS
from ckptcli.report.screen import Screen
from ckptcli.workloads.silu import SiluWorkload


@pytest.fixture(scope="module")
def record() -> RunRecord:
    return profile(SiluWorkload(layers=2, n=8), plan=Plan(reps=6))


def defined(words: set[str]) -> bool:
    return all(define(word)[1] for word in words)


def test_every_column_of_the_table(record: RunRecord) -> None:
    lines = render_run(record, Screen(120)).splitlines()
    (head,) = (line for line in lines if "vs reference" in line)
    columns = set(re.split(r" {2,}", head.strip()))
    assert {"strategy", "saved", "peak", "recomputed", "total", "vs reference"} <= columns
    assert defined(columns)


def test_every_reason_why_something_is_live(record: RunRecord) -> None:
    whys = {life.why for strategy in record.rows for life in strategy.trace.lives} | {
        why for strategy in record.rows for why in strategy.memory.peak_live.bytes_by_why
    }
    assert {"parameter", "saved", "gradient", "gradient of a parameter"} <= whys
    assert defined(whys)


def test_every_fate_of_a_node(record: RunRecord) -> None:
    fates = {node.fate for strategy in record.rows for node in strategy.trace.nodes}
    assert {"input", "output", "recomputed"} <= fates
    assert defined(fates | {"dropped"})


def test_every_verdict_and_judgement() -> None:
    assert defined(set(get_args(TimeVerdict)))
    assert defined(set(WORDS))


def test_every_metric_of_a_condition() -> None:
    assert defined({*TIMES, *EXACT})


def test_every_row_of_the_statistics() -> None:
    rows = set(_rows(describe([1.0, 2.0]))) - {"n", "95 % low", "95 % high"}
    assert defined(rows)
    assert defined({"interval"})


def test_every_key_of_the_json(record: RunRecord) -> None:
    whole = record_object(record)
    assert defined(set(whole) | set(whole["strategies"][0]))


def keys_of(schema: Any) -> Iterator[str]:
    """The keys of all objects that a schema describes."""
    if isinstance(schema, list):
        for item in schema:
            yield from keys_of(item)
    elif isinstance(schema, dict):
        yield from schema.get("properties", {})
        for part in schema.values():
            yield from keys_of(part)


def test_every_key_of_the_schema() -> None:
    keys = set(keys_of(run_schema()))
    assert {"held_for_constants", "needed_by", "bytes_by_why", "strategies"} <= keys
    assert defined(keys)


def test_a_key_is_told_in_the_words_of_the_schema() -> None:
    text = define("ops_per_point")[1]
    assert "How many ops a point of the timeline stands for" in text
    assert text.startswith("In `trace` of the JSON: ")


def test_every_column_of_the_tables_in_each_of_their_widths() -> None:
    columns = (*COLUMNS, *OF_PROGRAMS[1:])
    names = {name for column in columns for name in (column.name, column.narrow.name)}
    assert {"vs reference", "vs ref", "recomputed"} <= names
    assert defined(names | {"in_use", "has_caller"})


def test_every_word_of_burns_log_and_of_the_field() -> None:
    assert defined({"retrieve_node_output", "execute_retro_forward", "node(s) to compute"})
    assert defined({"n_required", "checkpoint", "gradient checkpointing", "peak"})
    assert defined({"rematerialisation", "rematerialization", "saved tensor", "residual"})


def test_definitions_are_one_to_three_sentences() -> None:
    for term, definition in GLOSSARY.items():
        assert definition.endswith("."), term
        assert len(re.findall(r"\.(?: |$)", definition)) <= 3, term


def test_aliases_lead_to_terms_and_hide_none() -> None:
    assert set(ALIASES.values()) <= set(GLOSSARY)
    assert not set(ALIASES) & set(GLOSSARY)


@pytest.mark.parametrize(
    ("words", "head"),
    [
        (["saved"], "saved (saved tensor, saved tensors, activation, activations, saved_bytes,"),
        (["peak_bytes"], "peak ("),
        (["gradient", "of", "a", "parameter"], "gradient of a parameter ("),
        (["Held  ONLY"], "held only\n"),
        (["params", "+", "input"], "params + input ("),
        (["remat"], "remat\n"),
    ],
)
def test_a_term_is_defined(capsys: pytest.CaptureFixture[str], words: list[str], head: str) -> None:
    assert run_command(["explain", *words]) == 0
    out = capsys.readouterr().out
    assert out.startswith(head)
    assert out.splitlines()[1].startswith("  ")


def test_every_strategy_is_defined(capsys: pytest.CaptureFixture[str]) -> None:
    for name in registry():
        assert run_command(["explain", name]) == 0
    assert "BalancedCheckpointing" in capsys.readouterr().out


def test_without_a_term_all_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command(["explain"]) == 0
    heads = [line for line in capsys.readouterr().out.splitlines() if not line.startswith(" ")]
    assert [head.partition(" (")[0] for head in heads] == list(defined_terms())
    assert list(defined_terms())[: len(GLOSSARY)] == list(GLOSSARY)


def test_an_unknown_term_names_the_nearest(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command(["explain", "savd"]) == 2
    assert "unknown term `savd`\n\nhint: did you mean `saved`?" in capsys.readouterr().err


def test_a_term_near_no_other_names_the_command_that_lists_them(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert run_command(["explain", "zzzzzz"]) == 2
    assert "hint: `ckpt explain` lists all" in capsys.readouterr().err


PLAN_AND_FITS = (
    ("plan", "-n", "8", "-l", "2", "--pareto", "--cost", "flops"),
    ("fits", "--over", "layers", "--device-memory", "3KiB", "-n", "8"),
)


@pytest.mark.parametrize("words", PLAN_AND_FITS, ids=lambda words: words[0])
def test_the_columns_of_plans_and_fits_are_defined(
    words: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_command(words) == 0
    lines = capsys.readouterr().out.splitlines()
    head = next(line for line in lines if line.startswith("strategy "))
    columns = [name for name in re.split(r"  +", head.strip()) if not name.startswith("largest ")]
    assert len(columns) >= 4
    assert all(define(name) for name in columns)


@pytest.mark.parametrize("word", ["dominated", "slots", "retro forward", "Peak_At_the next"])
def test_a_plural_and_an_underscore_find_their_term(word: str) -> None:
    assert define(word)
