"""Structures of which each has its blocks somewhere else."""

import torch
from torch import nn


class Layer(nn.Module):
    """A residual block."""

    def __init__(self, width=8):
        super().__init__()
        self.up, self.down = nn.Linear(width, 2 * width), nn.Linear(2 * width, width)

    def forward(self, x, scale=1.0):
        return x + scale * self.down(torch.tanh(self.up(x)))


class Decoder(nn.Module):
    """An embedding, a list of blocks in a plain loop, a head."""

    def __init__(self, count=6):
        super().__init__()
        self.embedding = nn.Linear(4, 8)
        self.layers = nn.ModuleList(Layer() for _ in range(count))
        self.head = nn.Linear(8, 3)

    def forward(self, x):
        x = self.embedding(x)
        for layer in self.layers:
            x = layer(x, 0.5)
        return self.head(x)


class Tuples(Decoder):
    """Each block gives a tuple, and the loop takes its first element."""

    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(TupleLayer() for _ in range(4))

    def forward(self, x):
        x = self.embedding(x)
        for layer in self.layers:
            x = layer(x)[0]
        return self.head(x)


class TupleLayer(Layer):
    def forward(self, x):
        return (super().forward(x), None)


class Busy(Decoder):
    """Work between the blocks."""

    def forward(self, x):
        x = self.embedding(x)
        for layer in self.layers:
            x = torch.sin(layer(x))
        return self.head(x)


class Collecting(Decoder):
    """What each block gives is used once more, at the end."""

    def forward(self, x):
        x = self.embedding(x)
        seen = []
        for layer in self.layers:
            x = layer(x)
            seen.append(x)
        return self.head(torch.stack(seen).sum(0))


class Wrapper(nn.Module):
    def __init__(self, inner):
        super().__init__()
        self.inner = inner

    def forward(self, x):
        return self.inner(x)


class Stages(nn.Module):
    """A stem, lists of lists of blocks, a head."""

    def __init__(self):
        super().__init__()
        self.stem = nn.Linear(4, 8)
        sizes = (2, 1, 3)
        self.stages = nn.Sequential(*(nn.Sequential(*(Layer() for _ in range(n))) for n in sizes))
        self.head = nn.Linear(8, 3)

    def forward(self, x):
        return self.head(self.stages(torch.relu(self.stem(x))))


class Down(nn.Module):
    """A block that begins with a layer without parameters, in a Sequential."""

    def __init__(self):
        super().__init__()
        self.part = nn.Sequential(nn.Tanh(), Layer())

    def forward(self, x):
        return self.part(x)


class Runs(nn.Module):
    """Two runs of leaves and a layer."""

    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 8), nn.Tanh())
        self.middle = nn.Linear(8, 8)
        self.classifier = nn.Sequential(nn.Linear(8, 8), nn.Tanh(), nn.Linear(8, 3))

    def forward(self, x):
        return self.classifier(self.middle(self.features(x)))


class Encoding(nn.Module):
    """Two lists, of an encoder and a decoder."""

    def __init__(self):
        super().__init__()
        self.encoder = nn.ModuleList(Layer(4) for _ in range(2))
        self.decoder = nn.ModuleList(Layer(4) for _ in range(3))

    def forward(self, x):
        for layer in (*self.encoder, *self.decoder):
            x = layer(x)
        return x


def x():
    return torch.rand(16, 4)


def decoder():
    return Decoder(), x()


def tuples():
    return Tuples(), x()


def busy():
    return Busy(), x()


def collecting():
    return Collecting(), x()


def wrapped():
    return Wrapper(Wrapper(Decoder(3))), x()


def wrapped_runs():
    return Wrapper(Runs()), x()


def stages():
    return Stages(), x()


def downs():
    return nn.Sequential(nn.Linear(4, 8), Down(), Down(), nn.Linear(8, 3)), x()


def runs():
    return Runs(), x()


def encoding():
    return Encoding(), x()


def by_keyword():
    return Decoder(), {"x": x()}
