"""A multilayer perceptron in equinox: `ckpt run --function examples/jax_equinox.py:make`."""

import equinox as eqx
import jax

WIDTH = 64
BATCH = 128


def make():
    """The mean of squares on a batch; what is no array stands beside the parameters."""
    model = eqx.nn.MLP(WIDTH, WIDTH, 256, 4, key=jax.random.key(0))
    params, static = eqx.partition(model, eqx.is_inexact_array)
    x = jax.random.normal(jax.random.key(1), (BATCH, WIDTH))

    def loss(params, x):
        return (jax.vmap(eqx.combine(params, static))(x) ** 2).mean()

    return loss, params, x


def make_checkpointed():
    """The model itself as the first argument, and `eqx.filter_checkpoint` around it."""
    model = eqx.nn.MLP(WIDTH, WIDTH, 256, 4, key=jax.random.key(0))
    x = jax.random.normal(jax.random.key(1), (BATCH, WIDTH))

    def loss(model, x):
        return (jax.vmap(eqx.filter_checkpoint(model))(x) ** 2).mean()

    return loss, model, x
