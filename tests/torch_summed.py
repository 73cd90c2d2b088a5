"""Networks whose gradients PyTorch sums in place, and what the tracing profiler says of a pass."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import nn
from torch.nn import functional as F

from ckptcli import Plan
from ckptcli.measure.record import RunRecord
from ckptcli.measure.rounds import collector_off
from ckptcli.torch import Step, profile


class Adapted(nn.Module):
    """Frozen layers with small adapters: what is given to a layer is given to its adapter too."""

    def __init__(self, width: int = 32) -> None:
        super().__init__()
        self.up = nn.Linear(width, 4 * width).requires_grad_(False)
        self.down = nn.Linear(4 * width, width).requires_grad_(False)
        self.up_a, self.up_b = nn.Linear(width, 4, False), nn.Linear(4, 4 * width, False)
        self.down_a, self.down_b = nn.Linear(4 * width, 4, False), nn.Linear(4, width, False)

    def forward(self, x: Any) -> Any:
        hidden = F.gelu(self.up(x) + self.up_b(self.up_a(x)))
        return x + self.down(hidden) + self.down_b(self.down_a(hidden))


class Residual(nn.Module):
    def __init__(self, width: int = 32) -> None:
        super().__init__()
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x: Any) -> Any:
        hidden = self.up(x)
        return x + self.down(hidden.sin() * hidden + hidden.tanh())


class Experts(nn.Module):
    """Each token goes through the expert that its router prefers: indexing in forward."""

    def __init__(self, width: int = 32) -> None:
        super().__init__()
        self.router = nn.Linear(width, 2)
        self.experts = nn.ModuleList(nn.Linear(width, width) for _ in range(2))

    def forward(self, x: Any) -> Any:
        weights = self.router(x).softmax(-1)
        best, result = weights.argmax(-1), torch.zeros_like(x)
        for i, expert in enumerate(self.experts):
            places = (best == i).nonzero()[:, 0]
            result = result.index_add(0, places, expert(x[places]) * weights[places, i : i + 1])
        return x + result


class Highest(nn.Module):
    def __init__(self, width: int = 32) -> None:
        super().__init__()
        self.up, self.down = nn.Linear(width, 8 * width), nn.Linear(width // 8, width)

    def forward(self, x: Any) -> Any:
        return self.down(self.up(x).view(len(x), -1, 64).max(-1).values)


class Tied(nn.Module):
    def __init__(self, width: int = 32, words: int = 64) -> None:
        super().__init__()
        self.table = nn.Embedding(words, width)
        self.blocks = nn.ModuleList(Residual(width) for _ in range(2))
        self.head = nn.Linear(width, words, bias=False)
        self.head.weight = self.table.weight

    def forward(self, words: Any) -> Any:
        x = self.table(words)
        for block in self.blocks:
            x = block(x)
        return self.head(x)


class Own(torch.autograd.Function):  # type: ignore[misc, name-defined]
    """Its backward adds out of place, and uses what it added to once more."""

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        return x + x

    @staticmethod
    def backward(ctx: Any, gradient: Any) -> Any:
        copied = gradient.clone()
        return (copied + gradient) * copied


class Drawn(nn.Module):
    """A network drawn from a seed, whose values are used again and again; some are watched by
    hooks, kept, viewed or expanded.
    """

    def __init__(self, seed: int) -> None:
        super().__init__()
        self.draw, self.layer = random.Random(seed), nn.Linear(32, 32)
        self.state, self.kept = self.draw.getstate(), ()

    def forward(self, x: Any) -> Any:
        self.draw.setstate(self.state)
        values = [self.layer(x)]
        for _ in range(12):
            values.append(self.step(values))
        return sum(values[-4:], torch.zeros(()))

    def step(self, values: Sequence[Any]) -> Any:
        a, b = self.draw.choice(values), self.draw.choice(values)
        kind = self.draw.randrange(9)
        if kind == 0:
            a.retain_grad()
        if kind == 1:
            a.register_hook(lambda gradient: gradient + gradient.neg())
        steps: list[Callable[[], Any]] = [
            lambda: a.neg(),
            lambda: a + b,
            lambda: a - b,
            lambda: a * b,
            lambda: a.view(-1).view_as(a) + a.t().contiguous().t(),
            lambda: Own.apply(a),
            lambda: a + b.sum(0, keepdim=True),
            lambda: torch.cat([a, b])[: len(a)] + b,
            lambda: a.clone().neg_(),
        ]
        return steps[kind]()


def mean_square(output: Any, batch: Any) -> Any:
    return output.square().mean()


def rows(count: int = 64) -> Any:
    return torch.rand(count, 32)


STEPS: dict[str, Callable[[], Step]] = {
    "adapters": lambda: Step(nn.Sequential(*(Adapted() for _ in range(3))), rows()),
    "adapters, a loss": lambda: Step(nn.Sequential(Adapted(), Adapted()), rows(), loss=mean_square),
    "residual": lambda: Step(nn.Sequential(*(Residual() for _ in range(3))), rows()),
    "experts": lambda: Step(nn.Sequential(Experts(), Experts()), rows(), loss=mean_square),
    "highest": lambda: Step(nn.Sequential(Highest(), Highest()), rows(256), loss=mean_square),
    "products": lambda: Step(
        nn.Sequential(nn.Linear(32, 32), Products()), rows(), loss=mean_square
    ),
    "tied": lambda: Step(Tied(), torch.arange(64).view(4, 16), loss=mean_square),
}


def recorded(step: Step) -> RunRecord:
    return profile(step, strategies=["remat"], plan=Plan(reps=1, warmup=0))


def events_peak(step: Step) -> int:
    """What is there before a pass, and the most that the events in it add up to, bytes."""
    module, x, loss = step.module, step.args, step.loss or (lambda output, _: output.sum())

    def one() -> None:
        loss(module(x), x).backward()
        module.zero_grad()

    one()
    tensors = {t.data_ptr(): t.nbytes for t in (*module.parameters(), x)}
    activities = [torch.profiler.ProfilerActivity.CPU]
    with (
        collector_off(),
        torch.profiler.profile(activities=activities, profile_memory=True) as seen,
    ):
        one()
    events = seen.profiler.kineto_results.events()
    now = highest = 0
    for _, change in sorted((e.start_ns(), e.nbytes()) for e in events if e.name() == "[memory]"):
        now += change
        highest = max(highest, now)
    return sum(tensors.values()) + highest


class Products(nn.Module):
    def forward(self, x: Any) -> Any:
        return x.cumprod(1)
