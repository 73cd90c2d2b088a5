"""A small part of what `scripts/fuzz` tries: files and lines that no program writes."""

from __future__ import annotations

import pytest

from tests import fuzz_cli, fuzz_graph, fuzz_plan, fuzz_record, fuzz_toml
from tests.fuzz_kit import Case, run

SEED = 1


@pytest.mark.parametrize(
    ("case", "count"),
    [
        (fuzz_graph.case, 60),
        (fuzz_plan.case, 25),
        (fuzz_record.case, 20),
        (fuzz_toml.case, 20),
        pytest.param(fuzz_cli.case, 40, marks=pytest.mark.slow),
    ],
    ids=["graph", "plan", "record", "toml", "cli"],
)
def test_whatever_is_given_ends_in_a_result_or_an_error(case: Case, count: int) -> None:
    done, findings = run(case, SEED, lambda tried: tried < count)
    assert (done, findings) == (count, [])
