"""A network in flax nnx, split and merged: `ckpt run --function examples/jax_nnx.py:make`."""

import jax
from flax import nnx

LAYERS = 4
WIDTH = 64
BATCH = 128


class Network(nnx.Module):
    """Linear layers with a gelu after each."""

    def __init__(self, rngs):
        self.layers = nnx.List(nnx.Linear(WIDTH, WIDTH, rngs=rngs) for _ in range(LAYERS))

    def __call__(self, x):
        for layer in self.layers:
            x = jax.nn.gelu(layer(x))
        return x


def make():
    """The mean of squares; parameters are what `nnx.split` gives, the rest is merged again."""
    graph, params = nnx.split(Network(nnx.Rngs(0)))
    x = jax.random.normal(jax.random.key(1), (BATCH, WIDTH))

    def loss(params, x):
        return (nnx.merge(graph, params)(x) ** 2).mean()

    return loss, params, x
