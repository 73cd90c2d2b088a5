"""A transformer in flax linen: `ckpt run --function examples/jax_flax.py:make`."""

import flax.linen as nn
import jax

BLOCKS = 4
HEADS = 4
WIDTH = 64


class Block(nn.Module):
    """Attention and two dense layers, each added to what comes in."""

    @nn.compact
    def __call__(self, x):
        h = nn.LayerNorm()(x)
        x = x + nn.MultiHeadDotProductAttention(num_heads=HEADS)(h)
        h = nn.LayerNorm()(x)
        return x + nn.Dense(WIDTH)(nn.gelu(nn.Dense(4 * WIDTH)(h)))


class Network(nn.Module):
    """Blocks one after the other; `block` is what makes one."""

    block: type

    @nn.compact
    def __call__(self, x):
        for _ in range(BLOCKS):
            x = self.block()(x)
        return x


def made(block):
    """The mean of squares of what the network returns."""
    network = Network(block)
    x = jax.random.normal(jax.random.key(1), (4, 32, WIDTH))
    params = network.init(jax.random.key(0), x)

    def loss(params, x):
        return (network.apply(params, x) ** 2).mean()

    return loss, params, x


def make():
    """Every block under `nn.remat`."""
    return made(nn.remat(Block))


def make_dots():
    """The same, products saved."""
    return made(nn.remat(Block, policy=jax.checkpoint_policies.dots_saveable))


def make_plain():
    """No checkpoint."""
    return made(Block)
