"""JAX functions of a user's own, in one file, and what tests of them share."""

from __future__ import annotations

import json
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from ckptcli.cli.main import run_command

NEEDS_FLAX = pytest.mark.skipif(find_spec("flax") is None, reason="flax is not installed")
NEEDS_EQUINOX = pytest.mark.skipif(find_spec("equinox") is None, reason="equinox is not installed")
EXAMPLES = Path(__file__).parent.parent / "examples"

FILE = '''
import functools
import random
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.ad_checkpoint import checkpoint_name


def layer(w, h):
    product = checkpoint_name(h @ w, "product")
    return jnp.tanh(product)


def arrays(layers=3, n=16):
    keys = jax.random.split(jax.random.key(0), layers)
    return [jax.random.normal(key, (n, n)) * n**-0.5 for key in keys], jnp.ones((32, n))


def network(call):
    ws, x = arrays()

    def loss(ws, x):
        for w in ws:
            x = call(w, x)
        return (x**2).mean()

    return loss, ws, x


def plain():
    return network(layer)


def checkpointed():
    return network(jax.checkpoint(layer))


def scanned():
    """The checkpoint is inside a scan, inside a jit."""
    ws, x = arrays()

    @jax.jit
    def loss(ws, x):
        last, _ = jax.lax.scan(lambda h, w: (jax.checkpoint(layer)(w, h), None), x, ws)
        return (last**2).mean()

    return loss, jnp.stack(ws), x


def branched():
    """The checkpoint is inside a branch, and around a function with a rule of its own."""
    ws, x = arrays()

    @jax.custom_vjp
    def steep(h):
        return jnp.abs(h)

    steep.defvjp(lambda h: (jnp.abs(h), h), lambda h, ct: (ct * 2.0 * jnp.sign(h),))

    def loss(ws, x):
        for w in ws:
            checkpointed = jax.checkpoint(lambda w, h: steep(layer(w, h)))
            x = jax.lax.cond(x[0, 0] > -5.0, checkpointed, lambda w, h: h, w, x)
        return (x**2).mean()

    return loss, ws, x


class Batch(NamedTuple):
    x: jax.Array
    labels: jax.Array
    mask: np.ndarray
    key: jax.Array
    scale: float
    kind: str
    times: int


def closed_over():
    """A constant that it closes over, literals, a jitted part, a name inside of it."""
    ws, x = arrays()
    table = jnp.linspace(0.0, 1.0, 16)

    @jax.jit
    def last(h):
        return checkpoint_name(jnp.sin(h), "wave") * h

    def loss(ws, scale):
        h = jnp.sin(x * table)
        for w in ws:
            h = jax.nn.gelu(layer(w, h)) * 2.0
        return (last(h) ** 2).mean() * scale

    return loss, ws, jnp.array(2.0)


class Blocks:
    """Methods, one of them called through a scan, a function called through a jit and a vmap."""

    def block(self, w, h):
        return jnp.sin(layer(w, h)) + h

    def __call__(self, ws, x):
        last, _ = jax.lax.scan(lambda h, w: (self.block(w, h), None), x, ws)
        once = jax.jit(jax.vmap(lambda h: layer(ws[0], h)))
        return once(once(last)).sum() + self.block(ws[1], x).mean()


def blocks():
    ws, x = arrays()
    call = Blocks()
    return lambda ws, x: call(ws, x), jnp.stack(ws), x


def under_policies():
    ws, x = arrays()
    saved = jax.checkpoint_policies.save_only_these_names("product")
    first = jax.checkpoint(layer, policy=saved)
    second = jax.checkpoint(layer, policy=jax.checkpoint_policies.dots_saveable)

    def loss(ws, x):
        return (second(ws[1], first(ws[0], x)) ** 2).mean()

    return loss, ws[:2], x


def sorted_rows():
    """Programs inside that return literals, a decomposition, an inner gradient."""
    ws, x = arrays()

    def energy(w, row):
        return jax.checkpoint(layer)(w, row[None])[0].sum()

    def loss(w, x):
        forces = jax.vmap(jax.grad(energy, argnums=1), (None, 0))(w, x)
        smallest = jnp.sort(jax.checkpoint(layer)(w, x), axis=1)[:, :3]
        return (forces**2).mean() + smallest.sum() + jnp.linalg.svd(w)[1].sum()

    return loss, ws[0], x


def everything():
    """Integers and booleans among parameters, keys, texts, numbers; an aux; not the first."""
    ws, x = arrays()
    batch = Batch(
        x, jnp.arange(32) % 16, np.arange(32) % 2 == 0, jax.random.key(1), 0.5, "mean", 2
    )

    def loss(batch, params):
        h = batch.x + 0.01 * jax.random.normal(batch.key, batch.x.shape)
        for _ in range(batch.times):
            h = jax.checkpoint(layer)(params["ws"][0], h)
        h = h * params["sign"] * batch.scale
        picked = jnp.take_along_axis(h, batch.labels[:, None], 1)[:, 0]
        reduce = {"mean": jnp.mean}[batch.kind]
        return reduce(jnp.where(batch.mask & params["on"], picked, 0.0)), {"h": h}

    loss.argnums = 1
    loss.has_aux = True
    return loss, batch, {"ws": ws, "sign": jnp.array(3), "on": True, "none": None, "f": jnp.tanh}


def complex_numbers():
    def loss(z, x):
        return jnp.abs(jax.checkpoint(lambda z: jnp.exp(1j * z) * x)(z)).sum()

    return loss, jnp.array([1.0 + 0.5j, 0.3 - 0.2j]), jnp.ones(2)


def halves():
    ws, x = arrays()
    ws, x = jax.tree.map(lambda a: a.astype(jnp.bfloat16), (ws, x))
    return network(jax.checkpoint(layer))[0], ws, x


def unsettled():
    """A bias that layer normalisation takes away again: its gradient is rounding alone."""
    ws, x = arrays()

    def loss(params, x):
        h = x @ params["w"] * jnp.arange(16.0) + params["bias"]
        h = (h - h.mean(1, keepdims=True)) / jnp.sqrt(h.var(1, keepdims=True) + 1e-5)
        return (jax.checkpoint(jnp.sin)(h) ** 3).mean()

    return loss, {"w": ws[0], "bias": jnp.ones(())}, x


def kinked():
    """Its rule is wrong on purpose, where nothing but a finite difference sees it."""

    @jax.custom_vjp
    def steep(h):
        return h * h

    steep.defvjp(lambda h: (h * h, h), lambda h, ct: (ct * 2.001 * h,))
    ws, x = arrays()
    return lambda w, x: jax.checkpoint(steep)(x @ w).mean(), ws[0], x


def rough():
    """What it computes in float32 is rough on the scale of small steps."""
    ws, x = arrays()
    single = lambda a: a.astype(jnp.float32)
    return lambda w, x: jax.checkpoint(jnp.tanh)(single(x) @ single(w)).mean(), ws[0], x


def moody():
    calls = iter(range(10**6))
    shape = jax.ShapeDtypeStruct((), np.float32)

    def noisy(w, h):
        seed = jax.lax.stop_gradient(h[0, 0])
        noise = jax.pure_callback(lambda _: np.float32(1.0 + 0.01 * next(calls)), shape, seed)
        return jnp.tanh(h @ w * noise)  # is another each time

    return network(jax.checkpoint(noisy))


def not_finite():
    def loss(w, x):
        y = jnp.log(w * x)  # makes the infinity
        return jnp.sum(jnp.cos(y))  # makes the nan

    return loss, jnp.zeros(3), jnp.ones(3)


COUNT = 0


def counted():
    def loss(w):
        global COUNT
        COUNT += 1
        return (w * COUNT).sum()

    return loss, jnp.ones(3)


def watched():
    """It counts, but computes the same each time, and prints."""
    seen = []

    def loss(w):
        seen.append(1)
        print("I am traced")
        return (w * 2.0).sum()

    return loss, jnp.ones(3)


class Counting:
    def __init__(self):
        self.calls = 0

    def __call__(self, params, x):
        self.calls += 1
        return jax.checkpoint(layer)(params["w"], x).mean()


def counting():
    """An object that counts its calls; a parameter without use."""
    ws, x = arrays()
    return Counting(), {"w": ws[0], "unused": ws[1]}, x


def drawn():
    return lambda w: (w * random.random()).sum(), jnp.ones(3)


def called_back():
    def loss(w):
        jax.debug.callback(lambda value: None, w[0])
        return (w * 2.0).sum()

    return loss, jnp.ones(3)


def looped():
    def loss(w):
        return jax.lax.while_loop(lambda v: v.sum() < 10.0, lambda v: v * 2.0, w).sum()

    return loss, jnp.ones(3)


def branching():
    return lambda w: w.sum() if w.sum() > 0 else -w.sum(), jnp.ones(3)


def stopped():
    return lambda w: jax.lax.stop_gradient(w).sum(), jnp.ones(3)


def vector():
    return lambda w: w * 2.0, jnp.ones(3)


def pair():
    return lambda w: (w.sum(), w), jnp.ones(3)


def whole():
    return lambda w: jnp.argmax(w), jnp.ones(3)


def integers():
    return lambda w: w.sum(), jnp.arange(3)


def numbers():
    loss = lambda w: w.sum()
    loss.argnums = "first"
    return loss, jnp.ones(3)


def nothing():
    return 3


def raises():
    raise KeyError("no data")  # the line that raises
'''


@pytest.fixture
def file(tmp_path: Path) -> str:
    """The path of the file."""
    (tmp_path / "net.py").write_text(FILE)
    return str(tmp_path / "net.py")


def line_of(words: str) -> int:
    """The number of the line of the file that has these words."""
    return next(n for n, line in enumerate(FILE.splitlines(), start=1) if words in line)


def ran(
    capsys: pytest.CaptureFixture[str], function: str, *arguments: str, code: int = 0
) -> dict[str, Any]:
    """The JSON of a short `ckpt run` of a function."""
    command = ["run", "--function", function, "--reps", "1", "--json"]
    assert run_command([*command, *arguments]) == code
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


def rows_of(data: dict[str, Any]) -> dict[str, Any]:
    """The rows by strategy."""
    return {row["strategy"]: row for row in data["strategies"]}
