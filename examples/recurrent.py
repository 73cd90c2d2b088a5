"""A recurrent cell in a loop: `ckpt run --workload examples/recurrent.py:make -s none -s sqrt`.

`make` leaves it to the strategy how turns are grouped; `marked` has a region per turn of its own.
"""

from ckptcli.autodiff.regions import checkpoint, checkpoint_name
from ckptcli.checkpoint.policies import save_only_these_names

TURNS = 49
BATCH = 64
WIDTH = 64


class Cell:
    """A gated unit: the state moves towards a candidate as far as the gate lets it."""

    def __init__(self, device):
        def weight():
            return device.normal((WIDTH, WIDTH), std=WIDTH**-0.5).require_grad()

        self.w_gate, self.w_candidate = weight(), weight()

    def __call__(self, h, x):
        gate = (checkpoint_name(h @ self.w_gate, "product") + x).sigmoid()
        candidate = (checkpoint_name(h @ self.w_candidate, "product") + x).tanh()
        return h + gate * (candidate - h)


def data(device):
    """The state before the first turn, and the input of each turn."""
    start = device.tensor([[0.0] * WIDTH] * BATCH)
    return start, [device.normal((BATCH, WIDTH)) for _ in range(TURNS)]


def make(device):
    """The mean square of the last state; each turn is a layer."""
    cell = Cell(device)
    start, inputs = data(device)

    def loss():
        h = start
        for turn in device.layers(TURNS):
            h = cell(h, inputs[turn])
        return h.square().mean()

    return loss


def marked(device):
    """The same loss; each turn is a region that saves its products, under any strategy."""
    cell = Cell(device)
    start, inputs = data(device)

    def turn(h, x):
        return cell(h, x)

    region = checkpoint(turn, policy=save_only_these_names("product"))

    def loss():
        h = start
        for x in inputs:
            h = region(h, x)
        return h.square().mean()

    return loss
