"""A residual network in PyTorch: `ckpt run --engine torch --module examples/torch_mlp.py:make`."""

import torch
from torch import nn

BLOCKS = 6
WIDTH = 256
BATCH = 1024


class Block(nn.Module):
    """Two linear layers with an activation between, added to what comes in."""

    def __init__(self):
        super().__init__()
        self.wide = nn.Linear(WIDTH, 4 * WIDTH)
        self.narrow = nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x):
        return x + self.narrow(torch.nn.functional.gelu(self.wide(x)))


def make():
    """The network and its input."""
    return nn.Sequential(*(Block() for _ in range(BLOCKS))), torch.randn(BATCH, WIDTH)
