"""Programs of a user's own that several tests run, and the types of the fixtures that run them."""

from __future__ import annotations

from collections.abc import Callable

from ckptcli.workloads.program import ProgramWorkload

Opener = Callable[..., ProgramWorkload]
Command = Callable[..., tuple[int, str, str]]

SILU = """
import numpy as np

LAYERS, N = 4, 8

def make(device):
    rng = np.random.Generator(np.random.PCG64(0))
    scale = 1.0 / np.sqrt(N)
    w = [rng.normal(0.0, scale, (N, N)).astype("float32") for _ in range(LAYERS)]
    w = [device.tensor(values).require_grad() for values in w]
    x = device.tensor(rng.random((N, N)).astype("float32"))

    def loss():
        h = x
        for layer in device.layers(LAYERS):
            h = h.matmul(w[layer]).silu()
        return h.sum()

    return loss
"""

SQUARE = """
def make(device):
    w = device.tensor([[1.0, 2.0], [3.0, 4.0]]).require_grad()
    x = device.tensor([[1.0, 0.5]])
    return lambda: (x @ w).square().sum()
"""


def program_that(body: str) -> str:
    lines = "".join(f"        {line}\n" for line in body.splitlines())
    return (
        "def make(device):\n"
        "    w = device.tensor([[1.0, 2.0]]).require_grad()\n"
        "    def loss():\n"
        f"{lines}"
        "    return loss\n"
    )
