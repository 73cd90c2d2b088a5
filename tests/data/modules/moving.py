"""Modules that are random or change state while they run."""

import random

import numpy as np
import torch
from torch import nn

NOISE = torch.Generator()


class Net(nn.Module):
    """Three blocks in a list."""

    def __init__(self, block):
        super().__init__()
        self.layers = nn.ModuleList(block() for _ in range(3))

    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        return x


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(8, 8)

    def forward(self, x):
        return torch.tanh(self.linear(self.moved(x)))

    def moved(self, x):
        return x


class Normed(Block):
    def __init__(self):
        super().__init__()
        self.norm = nn.BatchNorm1d(8)

    def moved(self, x):
        return self.norm(x)


class Dropping(Block):
    def __init__(self):
        super().__init__()
        self.drop = nn.Dropout(0.3)

    def moved(self, x):
        return self.drop(x)


class Noisy(Block):
    """Draws from a generator of its own."""

    def moved(self, x):
        return x + torch.rand(x.shape, generator=NOISE)


class Counting(Block):
    """What it gives depends on how often it was called since the pass began."""

    def __init__(self):
        super().__init__()
        self.calls = 0

    def moved(self, x):
        self.calls += 1
        return x * (1 + self.calls % 2)


class Pythons(Block):
    def moved(self, x):
        return x * random.random() + float(np.random.rand())


class Cached(Block):
    """A tensor that is put away at every call and read back only if it is there; the same bits."""

    def moved(self, x):
        self.last = x.detach() + 1
        return x


class NoisyNet(Net):
    """Starts every pass with the same noise."""

    def forward(self, x):
        NOISE.manual_seed(1)
        return super().forward(x)


class CountingNet(Net):
    """Starts every pass with counters at zero."""

    def forward(self, x):
        for layer in self.layers:
            layer.calls = 0
        return super().forward(x)


def x():
    return torch.rand(16, 8)


def normed():
    return Net(Normed), x()


def dropping():
    return Net(Dropping), x()


def noisy():
    return NoisyNet(Noisy), x()


def counting():
    return CountingNet(Counting), x()


def pythons():
    return Net(Pythons), x()


def cached():
    return Net(Cached), x()
