"""One word on each strategy, and why: on real programs where there is one, else on made records."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ckptcli import units
from ckptcli.cli.main import run_command
from ckptcli.measure.analysis import analysed
from ckptcli.measure.judge import judge
from ckptcli.measure.record import RunRecord
from ckptcli.measure.rounds import Plan
from ckptcli.measure.row import Judgement, Row
from ckptcli.profiling.profile import profile
from ckptcli.workloads.silu import SiluWorkload
from tests.records import STEADY, TENSOR, balanced_record, none_record, run_record

SIDE = 32
BYTES = SIDE * SIDE * 8
ONCE = Plan(reps=1, warmup=0)


def leaf(required: bool = True) -> dict[str, Any]:
    data = [0.01 * (i % 7 + 1) for i in range(SIDE * SIDE)]
    return {"op": "leaf", "req": required, "data": data}


def op(name: str, *inputs: int) -> dict[str, Any]:
    return {"op": name, "in": list(inputs)}


def profiled(folder: Path, *ops: dict[str, Any]) -> Row:
    """`balanced` on this program, against `none`."""
    path = folder / "program.json"
    path.write_text(json.dumps({"ops": ops, "root": len(ops) - 1}))
    record = profile(f"graph:{path}", plan=ONCE)
    assert record.rows[0].judgement is None
    return record.rows[1]


def judgement(record: Row) -> Judgement:
    assert record.judgement is not None
    return record.judgement


def word_on(row: Row, base: Row) -> str:
    found = judge(row, base, run_record())
    assert found is not None
    return found.word


def made(held: int, peak: int, **changes: Any) -> str:
    """The word on a strategy that holds and peaks at these thousandths of the reference's."""
    own = with_totals(balanced_record(), held * 1000, peak * 2000)
    return word_on(replace(own, **changes), with_totals(none_record(), 10**6, 2 * 10**6))


def with_totals(record: Row, held: int, peak: int) -> Row:
    memory = replace(
        record.memory,
        after_forward_bytes=held,
        ledger_peak_forward_bytes=held,
        ledger_peak_backward_bytes=peak,
        traced_peak_forward_bytes=held,
        traced_peak_backward_bytes=peak,
    )
    return replace(record, memory=memory)


def test_the_silu_network_is_effective() -> None:
    """8 layers: 9 tensors of parameters and input, 24 above them against 11."""
    record = profile(SiluWorkload(layers=8, n=64), plan=ONCE)
    none, balanced = record.rows
    found = judgement(balanced)
    assert found.word == "effective"
    tensor = 64 * 64 * 4
    assert balanced.memory.ledger_peak_bytes // tensor == 9 + 11
    assert none.memory.ledger_peak_bytes // tensor == 9 + 24
    assert found.reason == f"peak {units.change(balanced.peak_bytes, none.peak_bytes)}"
    assert round((9 + 11) / (9 + 24) * 100 - 100) == -39


def test_two_products_that_are_added_are_worse(tmp_path: Path) -> None:
    """Backward needs neither product; `balanced` holds both, to be able to add them again."""
    program = [leaf(), leaf(), op("matmul", 0, 1), op("matmul", 1, 0), op("add", 2, 3)]
    record = profiled(tmp_path, *program, op("sum", 4))
    assert record.memory.saved_bytes == 2 * BYTES
    found = judgement(record)
    assert found.word == "worse"
    assert found.reason.startswith("has 32.0 KiB instead of 16.0 KiB (+100 %) in use after forward")
    assert found.reason.endswith("keeps the inputs of what it recomputes")


def test_a_chain_of_functions_is_held_only(tmp_path: Path) -> None:
    """Nothing is held, but the first step of backward needs all of them again at once.

    The peak is the leaf, five values, and the cosine of the last one, under both strategies.
    """
    record = profiled(tmp_path, leaf(), *(op("sin", i) for i in range(6)), op("sum", 6))
    assert record.memory.saved_bytes == 0
    found = judgement(record)
    assert found.word == "held only"
    assert found.reason == (
        "has 8.0 KiB instead of 48.0 KiB (-83 %) in use after forward, but the peak stays at "
        f"{units.size(record.peak_bytes)}, set by recomputed 40.0 KiB, parameter 8.0 KiB, "
        "temporary 8.0 KiB"
    )


def test_a_chain_of_products_has_nothing_to_drop(tmp_path: Path) -> None:
    program = [leaf(), leaf(), leaf(), op("matmul", 0, 1), op("matmul", 3, 2), op("matmul", 4, 1)]
    found = judgement(profiled(tmp_path, *program, op("sum", 5)))
    assert found == Judgement(
        "no effect",
        "nothing to drop: no value that backward needs can be recomputed under this strategy",
    )


def test_a_program_whose_backward_needs_nothing_has_nothing_to_drop(tmp_path: Path) -> None:
    found = judgement(profiled(tmp_path, leaf(), leaf(), op("add", 0, 1), op("sum", 2)))
    assert found == Judgement("no effect", "nothing to drop: backward needs no intermediate value")


def test_a_constant_that_makes_a_value_held_is_named(tmp_path: Path) -> None:
    """`mul` with a constant is held where its value is needed, here for the gradient of `exp`."""
    program = [leaf(), leaf(required=False), op("mul", 0, 1), op("exp", 2), op("sum", 3)]
    record = profiled(tmp_path, *program)
    assert judgement(record) == Judgement(
        "no effect", "held, since a parent is a constant: node 2 (mul)"
    )
    (held,) = [node for node in record.trace.nodes if node.held_for_constants]
    assert (held.node, held.held_for_constants, held.fate) == (2, (1,), "saved")


def test_of_many_constants_five_are_named(tmp_path: Path) -> None:
    program = [leaf(required=False), leaf()]
    for _ in range(7):
        program.append(op("mul", len(program) - 1, 0))
        program.append(op("exp", len(program) - 1))
    found = judgement(profiled(tmp_path, *program, op("sum", len(program) - 1)))
    assert found.reason.endswith("node 2 (mul), node 4 (mul), node 6 (mul), node 8 (mul), "
                                 "node 10 (mul) and 2 more")  # fmt: skip


def test_what_is_kept_can_be_as_large_as_what_is_recomputed(tmp_path: Path) -> None:
    """exp(x @ w) * 2: one value needed, either the product or nothing less."""
    program = [leaf(), leaf(), op("matmul", 0, 1), op("neg", 2), op("exp", 3), op("sum", 4)]
    record = profiled(tmp_path, *program)
    assert record.outcome.recomputed_by_op == {"neg": 1}
    assert judgement(record) == Judgement(
        "no effect", "what is recomputed is as large as what has to be kept for it"
    )


def test_a_gradient_that_differs_is_wrong_whatever_the_memory() -> None:
    outcome = replace(none_record().outcome, grad_sha256="cd" * 32)
    record = run_record(none_record(), balanced_record(outcome=outcome))
    assert judgement(record.rows[1]) == Judgement("wrong", "a gradient differs from that of `none`")
    for held, peak in ((900, 900), (2000, 1500), (1000, 1000)):
        assert made(held, peak, outcome=outcome) == "wrong"


@pytest.mark.parametrize(
    ("held", "peak", "word"),
    [
        (1000, 1000, "no effect"),
        (1020, 1020, "no effect"),
        (1021, 1000, "worse"),
        (1000, 1021, "worse"),
        (1021, 600, "worse"),
        (500, 1021, "worse"),
        (1020, 979, "effective"),
        (500, 979, "effective"),
        (979, 1000, "held only"),
        (979, 1020, "held only"),
        (980, 1000, "no effect"),
        (1000, 980, "no effect"),
        (980, 980, "no effect"),
    ],
)
def test_precedence_and_the_two_percent(held: int, peak: int, word: str) -> None:
    """What is within 2 % of the reference's, either way, counts as unchanged."""
    assert made(held, peak) == word


@pytest.mark.parametrize(
    ("held", "peak", "why"),
    [
        (1000, 1000, "the compiled program holds as much and peaks as high"),
        (1300, 1000, "the compiler holds other values than the ops do one by one"),
    ],
)
def test_what_is_compiled_has_no_checkpoint_to_make_larger(held: int, peak: int, why: str) -> None:
    own = with_totals(balanced_record(), held * 1000, peak * 2000)
    base = with_totals(none_record(), 10**6, 2 * 10**6)
    assert own.memory is not None
    assert base.memory is not None
    memory = replace(own.memory, saved_bytes=base.memory.saved_bytes)
    own = replace(own, memory=memory, trace=None, compile_s=1.0)
    found = judge(own, base, replace(run_record(), children=("0", "1")))
    assert found is not None
    assert why in found.reason
    assert found.reason.endswith("smaller share of activations (-s compile:budget=0.5)")


def test_both_ways_of_being_worse_are_said() -> None:
    own = with_totals(balanced_record(), 3 * TENSOR, 4 * TENSOR)
    reference = with_totals(none_record(), 2 * TENSOR, 2 * TENSOR)
    found = judge(own, reference, run_record())
    assert found is not None
    assert found.reason.startswith(
        "has 12.0 MiB instead of 8.0 MiB (+50 %) in use after forward and "
        "peaks 16.0 MiB instead of 8.0 MiB (+100 %): "
    )


def test_the_peak_may_be_in_the_forward_pass() -> None:
    own = balanced_record()
    high = replace(own.memory, ledger_peak_forward_bytes=10**9)
    assert word_on(replace(own, memory=high), none_record()) == "worse"


def test_the_workspace_of_kernels_has_to_be_free_too() -> None:
    own = balanced_record()
    wide = replace(own.memory, traced_peak_backward_bytes=10**12)
    assert wide.peak_bytes == 10**12
    assert wide.workspace_bytes == 10**12 - own.memory.ledger_peak_bytes
    assert word_on(replace(own, memory=wide), none_record()) == "worse"


def derived(record: RunRecord) -> list[tuple[bool, bool, bool]]:
    return [
        (s.times is not None, s.ratios is not None, s.judgement is not None) for s in record.rows
    ]


def test_a_reference_is_compared_with_nothing() -> None:
    assert derived(run_record()) == [(True, False, False), (True, True, True)]
    assert derived(run_record(balanced_record())) == [(True, False, False)]
    marked = run_record(none_record(), balanced_record(reference=True))
    assert derived(marked) == [(True, True, True), (True, False, False)]


def test_without_samples_memory_is_judged_all_the_same() -> None:
    record = run_record(none_record([]), balanced_record([]))
    assert derived(record) == [(False, False, False), (False, False, True)]
    assert record.rows[1].median_s("total") is None


def test_ratios_are_of_each_phase_at_the_records_threshold() -> None:
    slower = [1.04 * time_s for time_s in STEADY]
    for threshold, verdict in ((0.02, "slower"), (0.1, "same")):
        record = run_record(none_record(), balanced_record(slower), threshold=threshold)
        ratios = record.rows[1].ratios
        assert ratios is not None
        assert list(ratios) == ["forward", "backward", "total"]
        assert {ratio.verdict for ratio in ratios.values()} == {verdict}
        assert ratios["total"].median == pytest.approx(1.04)


def test_more_strategies_make_verdicts_harder() -> None:
    """One stray round of nine is outside the interval of one comparison only."""
    stray = [0.99 * STEADY[0], *(1.1 * time_s for time_s in STEADY[1:])]
    slower = balanced_record(stray)
    alone = run_record(none_record(), slower).rows[1].ratios
    among = run_record(none_record(), slower, replace(slower, strategy="b")).rows[1].ratios
    assert alone is not None
    assert among is not None
    assert (alone["total"].verdict, among["total"].verdict) == ("slower", "unclear")
    assert alone["total"].low == among["total"].low


def test_analysing_twice_changes_nothing() -> None:
    record = run_record()
    assert analysed(record) == record


CONSTANT_PROGRAM = """
def make(device):
    w = device.tensor([1.5, 2.5]).require_grad()
    x = device.tensor([0.5, 0.7])

    def loss():
        h = w
        for layer in device.layers(2):
            h = (h * x).exp()
        return h.sum()

    return loss
"""


def test_a_constant_is_the_reason_of_a_strategy_that_goes_by_marks_alone(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same nodes are held under `none`, which drops nothing, and by a policy that saves all."""
    monkeypatch.chdir(tmp_path)
    Path("p.py").write_text(CONSTANT_PROGRAM)
    everything = "remat:policy=everything_saveable"
    words = ["run", "--workload", "p.py:make", "--reps", "1", "--json"]
    assert (
        run_command([*words, *(w for s in ("none", "balanced", everything) for w in ("-s", s))])
        == 0
    )
    rows = {row["strategy"]: row for row in json.loads(capsys.readouterr().out)["strategies"]}
    named = {
        strategy: [node["node"] for node in row["trace"]["nodes"] if node["held_for_constants"]]
        for strategy, row in rows.items()
    }
    assert named == {"none": [], "balanced": [2, 4], everything: []}
    reasons = {
        strategy: (row["judgement"] or {}).get("reason", "") for strategy, row in rows.items()
    }
    assert "a parent is a constant" in reasons["balanced"]
    assert "constant" not in reasons[everything]
