"""What a JAX function may close over, keep and give away, in the real command."""

from __future__ import annotations

from pathlib import Path

import pytest

from ckptcli.cli.main import run_command
from tests.backend_kit import NEEDS_JAX
from tests.jax_functions import ran, rows_of

FUNCTIONS = """
import jax
import jax.numpy as jnp
from jax.ad_checkpoint import checkpoint_name

KEY = jax.random.key(7)
HOLES = jnp.array([1.0, jnp.nan, 3.0, 4.0])
W, X = jnp.full((4, 4), 0.25), jnp.ones((3, 4))
POLICY = jax.checkpoint_policies.save_and_offload_only_these_names(
    names_which_can_be_saved=[],
    names_which_can_be_offloaded=["product"],
    offload_src="device",
    offload_dst="pinned_host",
)


def layer(w, x):
    return jnp.sin(checkpoint_name(x @ w, "product"))


def key():
    def loss(w, x):
        drawn = jax.random.bernoulli(jax.random.fold_in(KEY, 1), 0.5, x.shape)
        return (jax.checkpoint(layer)(w, x) * drawn).sum()

    return loss, W, X


def holes():
    return lambda w, x: jnp.where(jnp.isnan(HOLES), 0.0, layer(w, x) * HOLES).sum(), W, X


def kept():
    key = [jax.random.key(0)]

    def loss(w, x):
        key[0], drawn = jax.random.split(key[0])
        return (layer(w, x) * jax.random.normal(drawn, x.shape)).sum()

    return loss, W, X


def leaked():
    seen = []

    def inner(w, x):
        seen.append(x @ w)
        return jnp.sin(seen[-1])

    return lambda w, x: (jax.checkpoint(inner)(w, x) + seen[-1]).sum(), W, X


def donating():
    return jax.jit(lambda w, x: layer(w, x).sum(), donate_argnums=1), W, X


def donating_inside():
    inner = jax.jit(layer, donate_argnums=1)
    return lambda w, x: inner(w, inner(w, x)).sum(), W, X


def looping():
    def loss(w, x):
        turns = (x.sum() > 0).astype(int) + 1
        steps = jax.lax.while_loop(lambda n: n < 3, lambda n: n + 1, turns)
        return jax.lax.fori_loop(0, steps, lambda i, h: layer(w, h), x).sum()  # goes round

    return loss, W, X


def masked():
    def body(h, w):
        return jax.checkpoint(lambda w, h: (h @ w) * (h @ w > 0))(w, h), None

    w = jax.random.normal(jax.random.key(0), (2, 8, 8))
    return lambda w, x: (jax.lax.scan(body, x, w)[0] ** 2).mean(), w, jnp.ones((16, 8))


def under(names):
    policy = jax.checkpoint_policies.save_only_these_names(*names)
    both = jax.checkpoint_policies.save_from_both_policies(
        policy, jax.checkpoint_policies.nothing_saveable
    )
    call = jax.checkpoint(layer, policy=both)
    return lambda w, x: checkpoint_name(call(w, x), "outside").sum(), W, X


def mistyped():
    return under(["prodct"])


def outside():
    return under(["outside"])


def right():
    return under(["product"])


@jax.custom_vjp
def ruled(x):
    return jnp.sin(x)


def ruled_forward(x):
    kept = checkpoint_name(jnp.cos(x), "slope")
    return jnp.sin(x), kept


ruled.defvjp(ruled_forward, lambda kept, g: (kept * g,))


def in_a_rule():
    policy = jax.checkpoint_policies.save_only_these_names("slope")
    call = jax.checkpoint(lambda w, x: ruled(x @ w), policy=policy)
    return lambda w, x: call(w, x).sum(), W, X


def of_ckpt(value):
    return value.op == "matmul"


def offloading():
    def loss(w, x):
        for _ in range(3):
            x = jax.checkpoint(layer, policy=POLICY)(w, x)
        return x.sum()

    return loss, W, X
"""


@pytest.fixture
def net(tmp_path: Path) -> str:
    path = tmp_path / "net.py"
    path.write_text(FUNCTIONS)
    return str(path)


def refused(
    capsys: pytest.CaptureFixture[str], net: str, name: str, command: str = "run"
) -> tuple[int, str]:
    """The exit code, and all that the command says."""
    code = run_command([command, "--function", f"{net}:{name}"])
    captured = capsys.readouterr()
    assert captured.out == ""
    return code, captured.err


@NEEDS_JAX
@pytest.mark.parametrize("name", ["key", "holes"])
def test_constants_are_compared_by_their_bits(
    capsys: pytest.CaptureFixture[str], net: str, name: str
) -> None:
    assert run_command(["saved", "--function", f"{net}:{name}", "-s", "none"]) == 0
    assert "none: " in capsys.readouterr().out


@pytest.mark.slow
@NEEDS_JAX
@pytest.mark.parametrize("command", ["run", "check", "saved"])
@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("kept", "computes with a value (key<fry>[]) that was kept from the call before"),
        ("leaked", "(float32[3, 4]) that was kept from inside of a function under a jit"),
    ],
)
def test_a_value_of_a_trace_that_has_ended_is_told(
    capsys: pytest.CaptureFixture[str], net: str, name: str, words: str, command: str
) -> None:
    code, said = refused(capsys, net, name, command)
    assert (code, said.count("Error")) == (1, 1)
    assert words in said


@NEEDS_JAX
@pytest.mark.parametrize("name", ["donating", "donating_inside"])
def test_buffers_that_are_given_away_are_told(
    capsys: pytest.CaptureFixture[str], net: str, name: str
) -> None:
    code, said = refused(capsys, net, name)
    assert code == 2
    assert "donates buffers in `jit` at " in said
    assert "leave out `donate_argnums`" in said


@NEEDS_JAX
def test_the_loop_without_a_derivative_has_its_line(
    capsys: pytest.CaptureFixture[str], net: str
) -> None:
    line = 1 + FUNCTIONS.splitlines().index(
        next(each for each in FUNCTIONS.splitlines() if each.endswith("# goes round"))
    )
    code, said = refused(capsys, net, "looping")
    assert code == 1
    assert f"cannot be differentiated at the `while` at {net}:{line}:" in said


@NEEDS_JAX
def test_what_goes_to_the_host_is_not_computed_again(
    capsys: pytest.CaptureFixture[str], net: str
) -> None:
    row = rows_of(ran(capsys, f"{net}:offloading", "-s", "own"))["own"]
    assert "device_put" not in row["recomputed_by_op"]


@pytest.mark.slow
@NEEDS_JAX
def test_the_sign_of_a_zero_fails_no_check(capsys: pytest.CaptureFixture[str], net: str) -> None:
    assert run_command(["check", "--function", f"{net}:masked"]) == 0
    assert "op by op 2 of 2 that are seen" in capsys.readouterr().out


@NEEDS_JAX
@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("mistyped", "name `prodct`, which no value inside has (known there are product): give"),
        ("outside", "name `outside`, which no value inside has, only one outside (known there"),
        ("right", None),
        ("in_a_rule", None),
    ],
)
def test_a_name_of_a_policy_that_no_value_inside_has_is_told(
    capsys: pytest.CaptureFixture[str], net: str, name: str, words: str | None
) -> None:
    assert run_command(["saved", "--function", f"{net}:{name}", "-s", "own"]) == 0
    said = capsys.readouterr().err
    assert (words or "") in said
    assert said.count("goes by the name") == (words is not None)


@pytest.mark.slow
@NEEDS_JAX
@pytest.mark.parametrize(
    ("strategy", "words"),
    [
        ("remat:policy=save_only_these_names(prodct)", "no value has the name `prodct`"),
        ("remat:policy=save_only_these_names(slope)", None),
        ("remat:names=slope", None),
    ],
)
def test_a_name_of_a_strategy_that_no_value_has_is_told(
    capsys: pytest.CaptureFixture[str], net: str, strategy: str, words: str | None
) -> None:
    warnings = " ".join(ran(capsys, f"{net}:in_a_rule", "-s", strategy)["warnings"])
    assert (words or "") in warnings
    assert ("no value has the name" in warnings) == (words is not None)


@NEEDS_JAX
@pytest.mark.parametrize("command", ["saved", "run"])
def test_a_policy_that_jax_cannot_call_is_named(
    capsys: pytest.CaptureFixture[str], net: str, command: str
) -> None:
    arguments = ["--function", f"{net}:right", "-s", f"remat:policy={net}:of_ckpt"]
    assert run_command([command, *arguments]) == 2
    said = capsys.readouterr().err
    assert f"Error: policy `{net}:of_ckpt` failed: " in said
    assert "JAX calls it as `policy(primitive, *shapes, **parameters)`" in said
