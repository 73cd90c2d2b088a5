"""`remat:lines=FILE:FUNCTION`: a checkpoint around each call of a function of the user's."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ckptcli.cli.main import run_command
from ckptcli.peers.function_strategies import Place, parse_function_strategy
from tests.backend_kit import NEEDS_JAX
from tests.jax_functions import EXAMPLES, NEEDS_FLAX, file as file, ran, rows_of


def test_the_place_may_have_a_class_and_a_policy_beside_it() -> None:
    found = parse_function_strategy("remat:lines=a/b.py:Net.block,policy=dots_saveable,names=x")
    assert found.place == Place("a/b.py", "Net.block")
    assert (found.policy, found.names) == ("dots_saveable", ("x",))


@pytest.mark.slow
@NEEDS_JAX
def test_it_is_the_checkpoint_that_one_would_write(
    capsys: pytest.CaptureFixture[str], file: str
) -> None:
    """The row `own` of the file that has it, and the row of the file that has none."""
    lines = f"remat:lines={file}:layer"
    written = rows_of(ran(capsys, f"{file}:checkpointed", "-s", "own", "-s", lines, "-q"))
    asked = rows_of(ran(capsys, f"{file}:plain", "-s", lines, "-q"))
    keys = ("saved_bytes", "saved_tensors", "recomputed_by_op", "loss")
    own = [written["own"][key] for key in keys]
    assert [written[lines][key] for key in keys] == own
    assert [asked[lines][key] for key in keys] == own
    assert asked[lines]["agreement"]["agrees"]
    assert asked[lines]["counterpart"] == "3 calls of `layer`, each under a checkpoint"


@pytest.mark.long
@pytest.mark.slow
@NEEDS_JAX
def test_calls_are_found_whatever_they_go_through(
    capsys: pytest.CaptureFixture[str], file: str
) -> None:
    """A method in a scan and by itself, a function in a jit that is called twice, with a policy."""
    block, layer = f"remat:lines={file}:Blocks.block", f"remat:lines={file}:layer"
    policy = f"remat:lines={file}:block,policy=save_only_these_names(product)"
    words = [word for name in (block, layer, policy) for word in ("-s", name)]
    rows = rows_of(ran(capsys, f"{file}:blocks", *words, "-q"))
    assert all(row["agreement"]["agrees"] for row in rows.values())
    again = {name: row["recomputed_by_op"] for name, row in rows.items()}
    assert (again[block]["dot_general"], again[block]["tanh"]) == (4, 4)
    assert (again[layer]["dot_general"], again[layer]["tanh"]) == (6, 6)
    assert "dot_general" not in again[policy]
    assert again[policy]["tanh"] == 4
    held = {name: row["saved_bytes"] for name, row in rows.items()}
    assert held[block] < held[policy] < held["none"]


@pytest.mark.slow
@NEEDS_JAX
def test_check_and_saved_take_it(capsys: pytest.CaptureFixture[str], file: str) -> None:
    lines = f"remat:lines={file}:layer"
    function = ("--function", f"{file}:plain", "-s", lines, "--json", "-q")
    assert run_command(["check", *function]) == 0
    (found,) = json.loads(capsys.readouterr().out)["checks"]
    assert (found["passed"], found["sites"], found["compared"]) == (True, 9, 9)
    assert run_command(["saved", *function]) == 0
    (held,) = json.loads(capsys.readouterr().out)["strategies"]
    assert {entry["line"] for entry in held["saved"] if entry["kind"] == "computed"} != {""}


@pytest.mark.slow
@NEEDS_JAX
@NEEDS_FLAX
def test_a_method_of_flax_needs_no_lifting(capsys: pytest.CaptureFixture[str]) -> None:
    """`nn.remat` is what flax wants around a module; the program that was traced wants nothing."""
    lines = f"remat:lines={EXAMPLES / 'jax_flax.py'}:Block.__call__"
    flax = str(EXAMPLES / "jax_flax.py")
    command = ["saved", "--function", f"{flax}:make_plain", "-s", lines, "--json", "-q"]
    assert run_command(command) == 0
    (held,) = json.loads(capsys.readouterr().out)["strategies"]
    assert (held["saved_tensors"], held["saved_bytes"]) == (4, 131_072)


@pytest.mark.slow
@NEEDS_JAX
def test_a_function_that_is_not_called(
    capsys: pytest.CaptureFixture[str], file: str, tmp_path: Path
) -> None:
    (tmp_path / "other.py").write_text("def layer(w, h):\n    return h\n")
    for place, words in (
        (f"{file}:block", "functions of the file that it calls: layer, loss"),
        (f"{tmp_path}/other.py:layer", "functions of the file that it calls: none"),
    ):
        command = ["run", "--function", f"{file}:plain", "-s", f"remat:lines={place}"]
        assert run_command(command) == 2
        captured = capsys.readouterr()
        assert (captured.out, words in captured.err) == ("", True)
