"""The svd of the TRG in JAX three ways: names inside its rule, after it, and JAX's own rule.

Which gradient is wrong is the LAPACK's too; what is computed again, and so can be wrong, is JAX's.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from ckptcli.checkpoint.strategies.registry import parse_strategy
from ckptcli.cli.main import run_command
from ckptcli.options.commands.run import RunOptions
from ckptcli.options.effects import Kind, takes
from ckptcli.options.listing import options_of
from ckptcli.options.subjects import WORKLOAD
from ckptcli.peers.base import open_engines, regions_of
from ckptcli.workloads.trg import BUILTIN, NAMES_AFTER, NAMES_INSIDE, TrgWorkload
from tests.backend_kit import NEEDS_JAX
from tests.test_schema import check as check_schema
from tests.trg import GOLDEN, one_blas_thread

pytestmark = [pytest.mark.thinned(3), pytest.mark.usefixtures(one_blas_thread.__name__)]

WAYS = (NAMES_INSIDE, NAMES_AFTER, BUILTIN)
SVD = "remat:policy=save_only_these_names(svd)"


def opened(engine: str, steps: int, way: str, strategy: str) -> Any:
    (library,) = open_engines([engine])
    workload = TrgWorkload(steps, jax_svd=way)
    return library.network(workload, regions_of(parse_strategy(strategy), steps))


def gradient(network: Any) -> float:
    return float(network.values(network.backward(network.forward())).gradients[0][0])


# What it concerns.


def test_the_workload_says_which_unless_it_is_the_usual_one() -> None:
    assert "jax_svd" not in TrgWorkload().settings
    assert TrgWorkload().title == "steps = 20, chi = 16, beta = 0.3"
    other = TrgWorkload(jax_svd=NAMES_AFTER)
    assert other.settings["jax_svd"] == NAMES_AFTER
    assert other.title.endswith("svd in JAX = names-after")
    assert other.with_parameters({"beta": np.array([0.4])}).settings["jax_svd"] == NAMES_AFTER


@pytest.mark.parametrize(
    ("engines", "has_effect"),
    [((), False), (("torch",), False), (("jax",), True), (("torch", "jax-scan"), True)],
)
def test_only_an_engine_of_jax_looks_at_it(engines: Sequence[str], has_effect: bool) -> None:
    (option,) = [option for option in options_of(RunOptions) if option.name == "jax_svd"]
    subject = Kind(WORKLOAD, "trg", frozenset({"jax_svd"}), frozenset(engines))
    assert takes(subject, option) == has_effect


@pytest.mark.parametrize("command", ["check", "run"])
def test_without_jax_it_is_told_and_does_nothing(
    capsys: pytest.CaptureFixture[str], command: str
) -> None:
    quick = {"check": (), "run": ("--reps", "1", "--warmup", "0")}[command]
    arguments = (command, "--workload", "trg", "--steps", "2", "-s", "remat", *quick)
    assert run_command([*arguments, "--jax-svd", BUILTIN]) == 0
    told = capsys.readouterr().err
    assert "--jax-svd has no effect on workload `trg` without --engine jax" in told


def test_a_program_without_a_svd_has_no_use_for_it(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ("run", "-n", "8", "--reps", "1", "--warmup", "0", "--jax-svd", BUILTIN)
    assert run_command(list(arguments)) == 0
    told = capsys.readouterr().err
    assert "--jax-svd has no effect on workload `silu`\n" in told


def test_what_is_none_of_the_three(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command(["run", "--workload", "trg", "--jax-svd", "outside"]) == 2
    assert "names-inside" in capsys.readouterr().err


# What it does.


@NEEDS_JAX
@pytest.mark.slow
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("steps", [1, 4])
def test_without_a_checkpoint_all_are_right_where_no_singular_values_vanish(
    way: str, steps: int
) -> None:
    """JAX's own rule is nan where a machine's kernels round two of them to the same bits."""
    found = gradient(opened("jax", steps, way, "none"))
    if way == BUILTIN and np.isnan(found):
        return
    assert found == pytest.approx(GOLDEN[0.3][steps][1], rel=1e-12)


@NEEDS_JAX
@pytest.mark.slow
@pytest.mark.parametrize("strategy", ["none", "remat:names=x"])
def test_jaxs_own_rule_gives_nan_where_they_do(strategy: str) -> None:
    """From step 5 on, with 240 singular values that are zero: 0 / 0 for two that are equal."""
    assert np.isnan(gradient(opened("jax-eager", 5, BUILTIN, strategy)))


@NEEDS_JAX
@pytest.mark.slow
@pytest.mark.parametrize(
    ("way", "strategy", "again"),
    [
        *((way, "none", {}) for way in WAYS),
        *((way, "remat", {"svd": 4, "matmul": 4}) for way in WAYS),
        (NAMES_INSIDE, SVD, {"matmul": 4}),
        (NAMES_AFTER, SVD, {"svd": 4, "matmul": 4}),
        (BUILTIN, SVD, {"svd": 4, "matmul": 4}),
    ],
)
def test_a_name_after_the_rule_spares_no_decomposition(
    way: str, strategy: str, again: dict[str, int]
) -> None:
    assert opened("jax-eager", 2, way, strategy).measure().recomputed_by_op == again


@NEEDS_JAX
@pytest.mark.slow
def test_names_after_save_as_much_and_spare_nothing() -> None:
    """The copies are held beside what is computed again."""
    saved = [
        opened("jax-eager", 3, way, SVD).measure().memory.saved_bytes
        for way in (NAMES_INSIDE, NAMES_AFTER)
    ]
    assert saved[0] == saved[1]


@pytest.mark.long
@NEEDS_JAX
@pytest.mark.slow
def test_the_command_has_the_variant_in_its_record(capsys: pytest.CaptureFixture[str]) -> None:
    """Word, warning and exit code fit the number, which is up to XLA and LAPACK."""
    common = ("run", "--workload", "trg", "--steps", "5", "--reps", "1", "--warmup", "0", "--json")
    code = run_command(
        [*common, "-s", "none", "-s", SVD, "--engine", "jax", "--jax-svd", "names-after"]
    )
    captured = capsys.readouterr()
    data = json.loads(captured.out)
    check_schema(data)
    assert data["workload"]["jax_svd"] == data["config"]["jax_svd"] == NAMES_AFTER
    rows = {row["strategy"]: row for row in data["peers"]}
    assert rows["none"]["agreement"]["agrees"]
    assert rows[SVD]["recomputed_by_op"] == {"svd": 10, "matmul": 10}
    assert code == (0 if rows[SVD]["agreement"]["agrees"] else 5)
