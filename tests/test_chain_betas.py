"""The chain's steps prepared once for several inverse temperatures: values, bits and times."""

from __future__ import annotations

import itertools
import json
from typing import Any

import pytest

from ckptcli.backends import open_backend
from ckptcli.cli.main import run_command
from ckptcli.profiling.experiment import carried_out
from ckptcli.workloads import chain_betas
from ckptcli.workloads.chain_betas import BetaExperiment
from ckptcli.workloads.ising import infinite_lattice, torus
from tests.backend_kit import NEEDS_TORCH
from tests.test_traced_trg import GOLDENS
from tests.trg import one_blas_thread

pytestmark = pytest.mark.usefixtures(one_blas_thread.__name__)

CHAIN = ["run", "--workload", "chain", "--op", "trg"]


def found(capsys: pytest.CaptureFixture[str], *arguments: str, code: int = 0) -> Any:
    """The JSON object of a run that ends with this exit code."""
    assert run_command([*CHAIN, *arguments, "--json"]) == code
    return json.loads(capsys.readouterr().out)


@pytest.mark.parametrize("steps", [3, 4, pytest.param(6, marks=pytest.mark.slow)])
def test_a_row_for_each_beta(steps: int, capsys: pytest.CaptureFixture[str]) -> None:
    data = found(capsys, "--rounds", str(steps), "--beta", "0.3,0.44,0.5")
    assert (data["schema"], data["wrong"], data["partial"]) == ("ckpt.experiment/1", [], False)
    assert [row["beta"] for row in data["rounds"]] == [0.3, 0.44, 0.5]
    for row in data["rounds"]:
        exact = torus(row["beta"], steps)
        assert (row["exact_value"], row["exact_gradient"]) == (exact.loss, exact.gradient)
        if steps < 6:  # where nothing is cut off
            assert row["value"] == pytest.approx(exact.loss, rel=1e-12)
            assert row["gradient"] == pytest.approx(exact.gradient, rel=1e-12)
        if (row["beta"], steps) in GOLDENS:
            golden = GOLDENS[row["beta"], steps]
            assert (row["value"], row["gradient"]) == pytest.approx(golden, abs=1e-12)
        assert all(row[name] > 0.0 for name in ("replay_s", "residuals_s", "anew_s"))


def test_the_steps_are_prepared_once(capsys: pytest.CaptureFixture[str]) -> None:
    """4 steps are of 4 shapes, and a first and a last one; a program forward, one for the value
    alone and one backward for each.
    """
    data = found(capsys, "--beta", "0.3,0.44,0.5")
    for name in ("replay", "residuals"):
        prepared = data["facts"][f"prepared_{name}"]
        assert (prepared["programs"], prepared["programs_later"]) == (18, 0)
        assert prepared["prepare_s"] > 0.0


def test_the_first_row_alone_has_the_preparing() -> None:
    """A clock that advances by one second a reading: the first run reads it twice more."""
    seconds = itertools.count()
    record, failure = carried_out(
        BetaExperiment(2, (0.3, 0.44, 0.5)),
        open_backend(),
        lambda done, most: None,
        lambda: float(next(seconds)),
    )
    assert failure is None
    for name in ("replay_s", "residuals_s"):
        assert [row[name] for row in record.rounds] == [3.0, 1.0, 1.0]
    assert [row["anew_s"] for row in record.rounds] == [1.0, 1.0, 1.0]


@pytest.mark.slow
def test_what_theory_does_not_know_is_null(capsys: pytest.CaptureFixture[str]) -> None:
    (first, second) = found(capsys, "--rounds", "7", "--beta", "0.3,0.5")["rounds"]
    assert (first["exact_value"], second["exact_gradient"]) == (None, None)
    (first, second) = found(capsys, "--rounds", "12", "--beta", "0.3,0.5")["rounds"]
    assert first["exact_gradient"] == infinite_lattice(0.3).gradient
    assert second["gradient"] == pytest.approx(second["exact_gradient"], abs=1e-4)


def test_one_beta_is_the_chain_of_checkpoints_at_it(capsys: pytest.CaptureFixture[str]) -> None:
    data = found(capsys, "--rounds", "4", "--beta", "0.44", "--merge", "ptr-eq")
    assert data["workload"]["beta"] == 0.44
    assert [row["round"] for row in data["rounds"]] == [1, 2, 3, 4]
    facts = data["facts"]
    golden = pytest.approx(1.562847028103843, abs=1e-12)
    assert facts["gradient"] == golden
    assert facts["segments_replay"]["gradient"] == facts["segments_residuals"]["gradient"] == golden


@NEEDS_TORCH
@pytest.mark.slow
def test_another_backend(capsys: pytest.CaptureFixture[str]) -> None:
    data = found(capsys, "--rounds", "3", "--beta", "0.3,0.5", "--backend", "torch")
    assert data["rounds"][0]["gradient"] == pytest.approx(1.023802944795144, abs=1e-12)


def test_other_bits_than_those_built_anew_are_wrong(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Steps for another number of singular values stand for a fault in how they are prepared."""
    kept = chain_betas.kept_ranks
    monkeypatch.setattr(chain_betas, "kept_ranks", lambda steps, chi: kept(steps, 3))
    data = found(capsys, "--rounds", "4", "--beta", "0.3,0.5", code=5)
    assert len(data["wrong"]) == 4
    assert data["wrong"][0].startswith("beta = 0.3, replay: value 0.79")
    assert ", built anew 0.799095207857104" in data["wrong"][0]


def test_options_that_do_nothing_are_told(capsys: pytest.CaptureFixture[str]) -> None:
    several = ["--rounds", "1", "--beta", "0.3,0.5", "--merge", "copy"]
    assert run_command([*CHAIN, *several]) == 0
    out, err = capsys.readouterr()
    assert "--merge has no effect on workload `chain` with several --beta" in err
    assert out.startswith("device = Numpy(Cpu), chain, op = trg, rounds = 1, beta = 0.3, 0.5\n")
    assert run_command(["run", "--workload", "chain", "--rounds", "1", "--beta", "0.4"]) == 0
    assert "--beta has no effect on workload `chain` with --op mul" in capsys.readouterr().err


@pytest.mark.parametrize("text", ["0", "0.3,-1", "0.3,101", "0.3,x", ""])
def test_a_wrong_beta_is_refused(text: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command([*CHAIN, "--beta", text]) == 2
    assert "--beta" in capsys.readouterr().err
