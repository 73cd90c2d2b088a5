"""The chain from a placeholder: every checkpoint is refused, which is the result."""

from __future__ import annotations

import json

import pytest

from ckptcli.cli.main import run_command
from ckptcli.errors import BindingError
from ckptcli.traced import Tensor, Tracer
from ckptcli.workloads.chain_programs import Placeholders

COMMAND = ["run", "--workload", "chain", "--op", "placeholder"]
MESSAGE = "placeholder User { id: 0 } has no runtime input binding"


def test_the_message_is_the_result(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command(COMMAND) == 0
    out, err = capsys.readouterr()
    assert f"checkpoint on placeholder graph: {MESSAGE}\n" in out
    assert "--op trg --beta 0.3,0.44,0.5" in " ".join(out.split())
    assert "gradient 2, as it has to be\n" in out
    assert err == ""


def test_each_round_is_refused_and_the_graph_stays(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command([*COMMAND, "--rounds", "5", "--json"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert data["workload"] == {
        "name": "chain",
        "op": "placeholder",
        "rounds": 5,
        "title": "chain, op = placeholder, rounds = 5",
    }
    assert [(row["entries"], row["graphs"]) for row in data["rounds"]] == [(0, 0)] * 5
    assert [row["instructions"] for row in data["rounds"]] == [4 * n - 1 for n in range(1, 6)]
    facts = data["facts"]
    assert (facts["refused"], facts["refusal"], facts["gradient"]) == (5, MESSAGE, 32.0)
    with pytest.raises(BindingError) as error:
        Tracer().input((1,)).exp().checkpoint()
    assert (facts["refusal"], facts["hint"]) == (error.value.message, error.value.hint)
    assert (data["wrong"], data["partial"]) == ([], False)


def test_a_checkpoint_that_goes_through_is_wrong(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Placeholders, "made_leaf", lambda self, tracer: tracer.tensor([1.0]))
    monkeypatch.setattr(Placeholders, "evaluated", lambda self, t: float(t.evaluate().item()))
    assert run_command([*COMMAND, "--rounds", "2"]) == 5
    expected = "0 of 2 checkpoints of a graph with a placeholder were refused, and 2 changed"
    assert expected in " ".join(capsys.readouterr().out.split())


def test_another_error_is_not_taken_for_a_refusal(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def out_of_memory(tensor: Tensor) -> None:
        raise MemoryError

    monkeypatch.setattr(Tensor, "checkpoint", out_of_memory)
    assert run_command(COMMAND) == 1
    assert MESSAGE not in capsys.readouterr().out


def test_no_checkpoint_so_no_merge(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command([*COMMAND, "--merge", "copy", "--beta", "0.4"]) == 0
    assert sorted(capsys.readouterr().err.splitlines()) == [
        f"warning: {flag} has no effect on workload `chain` with --op placeholder"
        for flag in ("--beta", "--merge")
    ]
