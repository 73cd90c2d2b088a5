"""A network in plain JAX: `ckpt run --function examples/jax_mlp.py:make`."""

import jax
import jax.numpy as jnp
from jax.ad_checkpoint import checkpoint_name

LAYERS = 6
WIDTH = 256
BATCH = 1024


def layer(params, h):
    """Product, bias, gelu; the product has a name that policies can go by."""
    product = checkpoint_name(h @ params["weight"], "product")
    return jax.nn.gelu(product + params["bias"])


def make():
    """The mean square error on a batch, each layer under a checkpoint."""
    keys = jax.random.split(jax.random.key(0), LAYERS + 1)
    params = [
        {
            "weight": jax.random.normal(key, (WIDTH, WIDTH)) * WIDTH**-0.5,
            "bias": jnp.zeros(WIDTH),
        }
        for key in keys[1:]
    ]
    x = jax.random.uniform(keys[0], (BATCH, WIDTH))

    def loss(params, x):
        h = x
        for each in params:
            h = jax.checkpoint(layer)(each, h)
        return ((h - x) ** 2).mean()

    return loss, params, x
