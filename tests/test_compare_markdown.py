"""A comparison for a pull request: whole tables, the sentences of the screen, nothing as markup."""

from __future__ import annotations

import json
import re
from dataclasses import replace

from ckptcli.measure.compare import compare
from ckptcli.measure.record import RunRecord
from ckptcli.report.compare_markdown import comparison_json, comparison_markdown
from ckptcli.report.compare_table import readings
from tests.records import TENSOR, balanced_record, none_record, run_record


def smaller() -> RunRecord:
    """A run in which `balanced` holds one tensor less and peaks a tensor lower."""
    memory = balanced_record().memory
    assert memory is not None
    less = replace(
        memory,
        saved_bytes=memory.saved_bytes - TENSOR,
        **{
            f"{kind}_peak_{phase}_bytes": getattr(memory, f"{kind}_peak_{phase}_bytes") - TENSOR
            for kind in ("ledger", "traced")
            for phase in ("forward", "backward")
        },
    )
    return run_record(none_record(), balanced_record(memory=less))


def test_a_row_a_strategy_says_what_was_and_what_is() -> None:
    comparison = compare(run_record(), smaller())
    text = comparison_markdown("base.json", ["new.json"], [comparison])
    table = [line for line in text.splitlines() if line.startswith("|")]
    assert [line.count("|") for line in table] == [9] * 4
    none, balanced = table[2:]
    assert none.startswith("| none | 20.0 MiB | 38.0 MiB | 0 | 100.20ms ")
    assert balanced.startswith(
        "| balanced | 4.0 MiB, from 8.0 MiB, -50.0 % | 30.0 MiB, from 34.0 MiB, -11.8 % | 3 | "
    )
    assert balanced.endswith(" | unclear | identical |")


def test_the_sentences_of_the_screen_follow() -> None:
    comparison = compare(run_record(), smaller())
    text = comparison_markdown("base.json", ["new.json"], [comparison])
    assert text.startswith("### silu, n = 1024, layers = 2: compared with base.json\n")
    assert text.endswith("\n")
    sentences = [line.removeprefix("- ") for line in text.splitlines() if line.startswith("- ")]
    assert [line.replace("\\`", "`") for line in sentences] == list(readings(comparison))


def test_each_new_run_has_a_section() -> None:
    comparisons = [compare(run_record(), smaller()), compare(run_record(), run_record())]
    text = comparison_markdown("base.json", ["a.json", "b.json"], comparisons)
    assert re.findall(r"^new: (\S+):", text, flags=re.M) == ["a.json", "b.json"]
    assert text.count("| strategy |") == 2


def test_names_are_shown_as_they_are() -> None:
    rows = none_record(), balanced_record(strategy="<b>|x")
    record = run_record(*rows)
    text = comparison_markdown("a|b.json", ["*c*.json"], [compare(record, record)])
    assert "&lt;b&gt;\\|x" in text
    assert "compared with a\\|b.json" in text
    assert "new: \\*c\\*.json" in text


def test_the_json_is_the_one_that_the_command_prints() -> None:
    comparison = compare(run_record(), smaller())
    data = json.loads(comparison_json("base.json", ["new.json"], [comparison]))
    assert data["schema"] == "ckpt.compare/1"
    (entry,) = data["comparisons"]
    assert entry["new"]["file"] == "new.json"
    assert entry["strategies"][1]["peak_bytes"]["percent"] < -11.0
