"""`ckpt run --function FILE.py:MAKE`: a JAX function of the user's own, in the real command."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from ckptcli.cli.main import run_command
from ckptcli.errors import UnknownNameError, UsageError
from ckptcli.peers.function_strategies import (
    FunctionStrategy,
    Place,
    function_strategies,
    parse_function_strategy,
)
from tests.backend_kit import NEEDS_JAX
from tests.jax_functions import (
    EXAMPLES,
    NEEDS_EQUINOX,
    NEEDS_FLAX,
    file as file,
    line_of,
    ran,
    rows_of,
)

pytestmark = pytest.mark.thinned(3)

PAGE = (Path(__file__).parent.parent / "docs" / "jax.md").read_text("utf-8")
PAGE = PAGE[PAGE.index("## A function of your own") :]


def test_strategies_say_where_checkpoints_are() -> None:
    parsed = parse_function_strategy("remat:policy=save_only_these_names(a,b),names=c+d")
    assert (parsed.policy, parsed.names) == ("save_only_these_names(a,b)", ("c", "d"))
    parsed = parse_function_strategy("remat:lines=nets/a.py:Block.__call__,policy=dots_saveable")
    assert parsed.place == Place("nets/a.py", "Block.__call__")
    assert parse_function_strategy("own") == FunctionStrategy("own", "own")
    assert [each.name for each in function_strategies(["remat"])] == ["none", "remat"]
    assert [each.name for each in function_strategies([])] == ["none", "own", "remat"]


def test_balanced_is_one_region_under_its_policy() -> None:
    found = parse_function_strategy("balanced")
    assert (found.keyword, found.policy) == ("remat", "compute_bound_saveable")
    assert "one region around everything" in found.reading


@pytest.mark.parametrize("name", ["sqrt", "segments:2", "remat:every=2"])
def test_a_strategy_of_layers_says_why_it_is_nothing(name: str) -> None:
    assert "no layers" in str(parse_function_strategy(name).reason)


@pytest.mark.parametrize(
    ("text", "kind", "words"),
    [
        ("remt", UnknownNameError, "unknown strategy `remt`"),
        ("own:every=2", UsageError, "takes no arguments"),
        ("remat:lines=block", UsageError, "is not FILE.py:FUNCTION"),
        ("remat:evry=2", UnknownNameError, "key of strategy `remat`"),
    ],
)
def test_a_wrong_strategy(text: str, kind: type[Exception], words: str) -> None:
    with pytest.raises(kind, match=words):
        parse_function_strategy(text)
    with pytest.raises(UsageError, match="given twice"):
        function_strategies(["remat", "remat"])


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--engine", "torch"], "--function net.py:plain is JAX's, and --engine torch is not"),
        (["--module", "net.py:make"], "are two programs"),
        (["--fail-on", "remt.time > 1%"], "unknown strategy in --fail-on `remt`"),
        (["-s", "remat:lines=block"], "is not FILE.py:FUNCTION"),
    ],
)
def test_a_wrong_command_line(
    capsys: pytest.CaptureFixture[str], arguments: list[str], words: str
) -> None:
    assert run_command(["run", "--function", "net.py:plain", *arguments]) == 2
    captured = capsys.readouterr()
    assert (captured.out, words in captured.err) == ("", True)


def test_without_jax_the_line_that_installs_it_is_told(tmp_path: Path) -> None:
    program = "import sys; sys.modules['jax'] = None; from ckptcli.cli.main import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", program, "run", "--function", "net.py:plain"],
        capture_output=True,
        text=True,
        cwd=tmp_path,
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert "pip install 'ckptcli[jax]'" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.slow
@NEEDS_JAX
@pytest.mark.parametrize("name", ["checkpointed", "scanned", "branched"])
def test_own_is_the_function_and_none_is_it_without_its_checkpoints(
    capsys: pytest.CaptureFixture[str], file: str, name: str
) -> None:
    """Three layers of tanh: a product and two more values a layer; what none keeps own does not."""
    rows = rows_of(ran(capsys, f"{file}:{name}", "-q"))
    assert list(rows) == ["none", "own", "remat"]
    assert all(row["agreement"]["agrees"] for row in rows.values())
    assert rows["none"]["recomputed_by_op"] == {}
    own, whole = rows["own"]["recomputed_by_op"], rows["remat"]["recomputed_by_op"]
    assert (own["dot_general"], own["tanh"]) == (3, 3)
    assert (whole["dot_general"], whole["tanh"]) == (3, 3)
    saved = [row["saved_bytes"] for row in rows.values()]
    assert saved[0] > saved[1] > saved[2] == 0


@pytest.mark.slow
@NEEDS_JAX
def test_inlining_leaves_the_program_that_was_written_without(file: str) -> None:
    """Checkpoints off are the very program of the file that has none."""
    import jax

    from ckptcli.peers.jax_evaluate import has_checkpoint
    from ckptcli.peers.jax_function import load_function
    from ckptcli.peers.jax_function_rows import FunctionRows
    from ckptcli.peers.jax_trial import traced

    def program(name: str) -> Any:
        user = load_function(f"{file}:{name}")
        rows = FunctionRows(user, traced(user))
        return jax.make_jaxpr(rows.without)(user.parameter_leaves(), user.other_arrays())

    assert str(program("checkpointed")) == str(program("plain"))
    for name in ("scanned", "branched", "everything"):
        assert not has_checkpoint(program(name).jaxpr)


@pytest.mark.slow
@NEEDS_JAX
def test_any_pytree_goes_in(capsys: pytest.CaptureFixture[str], file: str) -> None:
    import jax

    from ckptcli.peers.jax_function import load_function

    user = load_function(f"{file}:everything")
    assert user.parameter_names() == ["params['ws'][0]", "params['ws'][1]", "params['ws'][2]"]
    assert "batch.labels" in user.array_names()
    assert "params['sign']" in user.array_names()
    data = ran(capsys, f"{file}:everything", "-q")
    rows = rows_of(data)
    assert all(row["agreement"]["agrees"] for row in rows.values())
    batch, params = jax.tree_util.tree_unflatten(user.tree, user.leaves)
    expected = user.loss(batch, params)[0]
    assert rows["own"]["loss"] == pytest.approx(float(expected), rel=1e-6)


@pytest.mark.slow
@NEEDS_JAX
@pytest.mark.parametrize("name", ["complex_numbers", "halves", "sorted_rows"])
def test_parameters_of_other_dtypes_and_what_else_programs_have(
    capsys: pytest.CaptureFixture[str], file: str, name: str
) -> None:
    rows = rows_of(ran(capsys, f"{file}:{name}", "-q"))
    assert all(row["agreement"]["agrees"] for row in rows.values())


@pytest.mark.slow
@NEEDS_JAX
def test_a_gradient_that_is_rounding_is_not_called_wrong(
    capsys: pytest.CaptureFixture[str], file: str
) -> None:
    data = ran(capsys, f"{file}:unsettled", "-q")
    assert all(row["agreement"]["agrees"] for row in data["strategies"])
    (told,) = [text for text in data["warnings"] if "rounding" in text]
    assert told.startswith(
        "1 of 2 gradients are rounding alone, among them that of `params['bias']"
    )


@pytest.mark.long
@pytest.mark.slow
@NEEDS_JAX
def test_every_policy_of_jax_by_its_name(capsys: pytest.CaptureFixture[str], file: str) -> None:
    """What JAX itself keeps under the policy, by its own list, is what the row has."""
    import jax

    makers = {
        "save_only_these_names",
        "save_any_names_but_these",
        "save_anything_except_these_names",
    }
    both = "save_from_both_policies"
    offloads = {name for name in vars(jax.checkpoint_policies) if "offload" in name}
    texts = {
        name: f"{name}(product)" if name in makers else name
        for name in sorted(vars(jax.checkpoint_policies))
        if name != both and name not in offloads
    }
    texts[both] = f"{both}(checkpoint_dots,save_only_these_names(product))"
    words = [word for text in texts.values() for word in ("-s", f"remat:policy={text}")]
    words += ["-s", "remat:policy=offload_dot_with_no_batch_dims", "-s", "remat:names=product"]
    words += ["-s", "balanced"]
    rows = rows_of(ran(capsys, f"{file}:plain", *words, "-q"))
    n, products = 32 * 16 * 4, 3
    held = {name: rows[f"remat:policy={text}"]["saved_bytes"] for name, text in texts.items()}
    for name in ("dots_saveable", "checkpoint_dots", "dots_with_no_batch_dims_saveable", both):
        assert held[name] == products * n
    assert held["save_only_these_names"] == products * n
    assert (held["nothing_saveable"], held["save_any_names_but_these"]) == (0, 0)
    assert held["everything_saveable"] == rows["none"]["saved_bytes"]
    assert held["save_anything_except_these_names"] == rows["none"]["saved_bytes"]
    assert rows["remat:names=product"]["saved_bytes"] == products * n
    assert rows["balanced"]["saved_bytes"] == products * n
    assert "one region" in rows["balanced"]["counterpart"]
    assert "nothing to the host" in rows["remat:policy=offload_dot_with_no_batch_dims"]["reason"]


@pytest.mark.slow
@NEEDS_JAX
def test_nan_is_told_with_what_makes_it(capsys: pytest.CaptureFixture[str], file: str) -> None:
    data = ran(capsys, f"{file}:not_finite", "-s", "remat", "-q")
    told = [text for text in data["warnings"] if "first nan" in text]
    assert len(told) == 2
    assert f"`cos` at {file}:{line_of('makes the nan')}:" in told[0]
    assert f"the first infinity by `log` at {file}:{line_of('makes the infinity')}:" in told[0]
    assert any(text.startswith("none: the loss is nan") for text in data["warnings"])
    assert any("1 of 1 gradient is not finite, that of `w`" in text for text in data["warnings"])


@pytest.mark.slow
@NEEDS_JAX
@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("watched", "prints (`I am traced`): under jit that happens when it is traced"),
        ("watched", "`seen` goes from 0 elements to 1 elements"),
        ("counting", "`self.calls` goes from 0 to 1"),
        ("counting", "no gradient flows to `params['unused']`: the loss does not use it"),
        ("called_back", "calls Python in every pass: its time is in the figures"),
    ],
)
def test_what_happens_beside_the_program_is_told(
    capsys: pytest.CaptureFixture[str], file: str, name: str, words: str
) -> None:
    data = ran(capsys, f"{file}:{name}", "-s", "none", "-q")
    assert any(words in text for text in data["warnings"]), data["warnings"]


@pytest.mark.slow
@NEEDS_JAX
@pytest.mark.parametrize(
    ("name", "code", "words"),
    [
        ("counted", 1, "is not a function: traced twice it gives two programs"),
        ("counted", 1, "(`COUNT` goes from 0 to 1); take what changes as an argument"),
        ("drawn", 1, "is not a function: traced twice it gives two programs"),
        ("looped", 1, "cannot be differentiated at the `while` at "),
        ("branching", 1, "TracerBoolConversionError"),
        ("stopped", 1, "has no gradient: its loss depends on no parameter"),
        ("vector", 2, "is an array float32[3], not a scalar; return a sum or a mean"),
        ("pair", 2, "returns a tuple, not a scalar; set `loss.has_aux = True`"),
        ("whole", 2, "is int32, which has no derivative"),
        ("integers", 2, "has no array of floating point in `w`"),
        ("numbers", 2, "`argnums` of the loss of"),
        ("nothing", 2, "gives an object of type int; it returns (loss, params, *batch)"),
        ("raises", 1, "(`raise KeyError"),
        ("plian", 2, "did you mean `plain`?"),
    ],
)
def test_what_is_no_differentiable_function(
    capsys: pytest.CaptureFixture[str], file: str, name: str, code: int, words: str
) -> None:
    assert run_command(["run", "--function", f"{file}:{name}"]) == code
    captured = capsys.readouterr()
    assert captured.out == ""
    assert words in captured.err.replace("\n\nhint: ", "; ")
    assert len([line for line in captured.err.splitlines() if line.startswith("Error")]) == 1


@pytest.mark.long
@pytest.mark.slow
@NEEDS_JAX
def test_all_that_a_run_can_do_works_on_it(
    capsys: pytest.CaptureFixture[str], file: str, tmp_path: Path
) -> None:
    function = ("--function", f"{file}:checkpointed", "--reps", "9", "-q")
    exports = [tmp_path / f"a.{suffix}" for suffix in ("json", "csv", "md", "html")]
    words = [word for path in exports for word in ("--export", str(path))]
    assert run_command(["run", *function, *words, "--engine", "jax", "--engine", "jax-eager"]) == 0
    assert "jax-eager own" in capsys.readouterr().out
    assert all("remat" in path.read_text() for path in exports)
    record = json.loads(exports[0].read_text())
    assert [row["engine"] for row in record["strategies"]] == ["jax"] * 3 + ["jax-eager"] * 3
    assert record["workload"]["name"] == "function"
    eager = record["strategies"][-1]
    assert None not in (eager["forward_s"]["median"], eager["backward_s"]["median"])
    for command in (["show"], ["compare", str(exports[0])]):
        assert run_command([*command, str(exports[0])]) == 0
        assert "own" in capsys.readouterr().out
    assert run_command(["run", *function, "--fail-on", "own.saved_bytes < -10%"]) == 3
    assert run_command(["run", *function, "--fail-on", "saved_bytes > 0%"]) == 0
    assert run_command(["run", *function, "--export", str(tmp_path / "a.svg")]) == 2
    capsys.readouterr()
    merged = ran(capsys, f"{file}:checkpointed", "--processes", "2", "-q")
    assert (merged["processes"], list(rows_of(merged))) == (2, ["none", "own", "remat"])


@pytest.mark.slow
@NEEDS_JAX
def test_the_line_that_measures_again_does(capsys: pytest.CaptureFixture[str], file: str) -> None:
    assert run_command(["run", "--function", f"{file}:plain", "--reps", "1"]) == 0
    captured = capsys.readouterr()
    (line, *_) = [t for t in captured.err.splitlines() if t.startswith("next: ckpt run")]
    words = line.removeprefix("next: ckpt ").split()
    assert words[words.index("--function") + 1] == f"{file}:plain"
    assert run_command([*words, "--reps", "1", "-q"]) == 0


@pytest.mark.slow
@NEEDS_JAX
def test_options_without_effect_are_named(capsys: pytest.CaptureFixture[str], file: str) -> None:
    arguments = ["run", "--function", f"{file}:plain", "--reps", "1", "-n", "4"]
    assert run_command([*arguments, "-s", "own", "-s", "remat:names=hidden"]) == 0
    captured = capsys.readouterr()
    assert "warning: --n has no effect on a function" in captured.err
    assert "own: n/a: the function has no checkpoint of its own: it is `none`" in captured.out
    assert "warning: remat:names=hidden: no value has the name `hidden`" in captured.err


@pytest.mark.slow
@NEEDS_JAX
def test_policies_that_are_not_there(capsys: pytest.CaptureFixture[str], file: str) -> None:
    for policy, words in (
        ("dots_savable", "did you mean `dots_saveable`?"),
        ("dots_saveable(a", "brackets of policy"),
        ("save_only_these_names", "needs names"),
    ):
        arguments = ["run", "--function", f"{file}:plain", "-s", f"remat:policy={policy}"]
        assert run_command(arguments) == 2
        assert words in capsys.readouterr().err


@pytest.mark.long
@pytest.mark.slow
@NEEDS_JAX
def test_the_function_of_the_page_is_one(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"```python\n(.*?)```", PAGE, flags=re.S)
    (program,) = [block for block in blocks if "def make" in block]
    (tmp_path / "model.py").write_text(program)
    commands = re.findall(r"^    ckpt (.*)$", PAGE, flags=re.M)
    assert commands
    for command in commands:
        assert run_command([*command.split(), "-q"]) == 0
        assert "model.py:make" in capsys.readouterr().out


EXAMPLE_RUNS = [
    pytest.param("jax_mlp.py:make", "own", id="plain"),
    pytest.param("jax_flax.py:make", "own", marks=NEEDS_FLAX, id="flax linen"),
    pytest.param("jax_nnx.py:make", "remat", marks=NEEDS_FLAX, id="flax nnx"),
    pytest.param("jax_equinox.py:make_checkpointed", "own", marks=NEEDS_EQUINOX, id="equinox"),
]


@pytest.mark.slow
@NEEDS_JAX
@pytest.mark.parametrize(("function", "strategy"), EXAMPLE_RUNS)
def test_the_examples_run(capsys: pytest.CaptureFixture[str], function: str, strategy: str) -> None:
    rows = rows_of(ran(capsys, str(EXAMPLES / function), "-s", strategy, "-q"))
    assert all(row["agreement"]["agrees"] for row in rows.values())
    assert rows[strategy]["saved_bytes"] < 0.5 * rows["none"]["saved_bytes"]
    assert rows[strategy]["judgement"]["word"] in ("held only", "effective", "worse", "no effect")
