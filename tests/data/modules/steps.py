"""Modules with a loss of the user's own, and what else `MAKE` may return."""

import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint

from ckptcli.torch import Step


def net():
    torch.manual_seed(7)
    blocks = [nn.Sequential(nn.Linear(32, 32), nn.Tanh(), nn.Linear(32, 32)) for _ in range(3)]
    return nn.Sequential(*blocks, nn.Linear(32, 10))


def labelled():
    torch.manual_seed(8)
    return torch.rand(64, 32), torch.randint(0, 10, (64,))


def entropy(output, batch):
    return F.cross_entropy(output, batch[1])


def step():
    x, y = labelled()
    return Step(net(), x, loss=entropy, batch=(x, y))


def mapping():
    x, y = labelled()
    return {"module": net(), "args": (x,), "loss": lambda output, _: F.cross_entropy(output, y)}


class Scaled(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = net()

    def forward(self, x, *, scale):
        return {"logits": self.inner(x) * scale}


def keywords():
    x, y = labelled()

    def loss(output, batch):
        return F.cross_entropy(output["logits"], batch["y"][:, 0]) + batch["scale"]

    batch = {"y": y[:, None], "scale": 0.5}
    return Step(Scaled(), kwargs={"x": x, "scale": 0.5}, loss=loss, batch=batch)


def from_input():
    """The loss gets what the module was given."""
    return Step(net(), labelled()[0], loss=lambda output, x: (output - x[:, :10]).square().mean())


def held():
    x, y = labelled()
    return Step(net(), x, loss=entropy, batch=(x, y), keep_output=True)


def trained(optimizer=torch.optim.AdamW, **more):
    x, y = labelled()
    return Step(net(), x, loss=entropy, batch=(x, y), optimizer=optimizer, **more)


def instance():
    found = trained(None)
    optimizer = torch.optim.SGD(found.module.parameters(), lr=0.1, momentum=0.9)
    return Step(found.module, found.args, {}, entropy, optimizer, batch=found.batch)


def accumulated():
    return trained(accumulate=3)


def low_rank():
    """A frozen layer beside two small ones that are trained."""
    torch.manual_seed(5)
    found = trained(lambda parameters: torch.optim.SGD(parameters, lr=0.5))
    for block in list(found.module)[:3]:
        block[0] = LowRank(block[0].requires_grad_(False))
        block[2].requires_grad_(False)
    return found


class Margin(nn.Module):
    """A loss with a parameter of its own, which the optimizer moves too."""

    def __init__(self):
        super().__init__()
        self.scale = nn.Parameter(torch.tensor(2.0))
        self.register_buffer("weights", torch.rand(10))

    def forward(self, output, batch):
        return F.cross_entropy(output * self.scale, batch[1], self.weights)


def criterion():
    x, y = labelled()
    loss = Margin()
    return Step(net(), x, {}, loss, lambda parameters: torch.optim.SGD(parameters, 0.1), batch=(x, y))


class LowRank(nn.Module):
    def __init__(self, frozen):
        super().__init__()
        self.frozen = frozen
        self.down, self.up = nn.Linear(32, 4, bias=False), nn.Linear(4, 32, bias=False)

    def forward(self, x):
        return self.frozen(x) + self.up(self.down(x))


def clipped():
    """A forward that moves a parameter, as some constraints are kept: nothing may share it."""
    found = trained()

    def clip(module, arguments):
        for parameter in module.parameters():
            parameter.data.clamp_(-0.05, 0.05)

    found.module[0].register_forward_pre_hook(clip)
    return found


class Broken(torch.optim.SGD):
    def step(self):
        raise RuntimeError("no step today")


def broken():
    return trained(Broken)


def foreign():
    return trained(torch.optim.SGD([nn.Parameter(torch.ones(2))]))


def stepless():
    return trained(list)


def vector():
    return Step(net(), labelled()[0], loss=lambda output, x: output.sum(1))


def number():
    return Step(net(), labelled()[0], loss=lambda output, x: output.sum().item())


def detached():
    return Step(net(), labelled()[0], loss=lambda output, x: output.detach().sum())


def fails():
    return Step(net(), labelled()[0], loss=lambda output, x: output @ x)  # the line that fails


def misspelt():
    return {"module": net(), "arguments": labelled()[0]}


def headless():
    return {"args": labelled()[0]}


def no_module():
    return Step(net, labelled()[0])


def three():
    return net(), labelled()[0], nn.MSELoss()


def swapped():
    return labelled()[0], net()


def output_alone():
    return Step(net(), labelled()[0], loss=lambda output: output.mean())


def named():
    return trained("adamw")


def listed():
    return net(), ([labelled()[0]],)


class Reentrant(nn.Module):
    """Its first input requires no gradient, so that none flows to its output."""

    def __init__(self):
        super().__init__()
        self.inner = net()

    def forward(self, x):
        return checkpoint(self.inner, x, use_reentrant=True)


def cut():
    return Reentrant(), labelled()[0]


def cut_loss():
    return Step(*cut(), loss=lambda output, x: output.sum())


class Switched(nn.Module):
    """As a model of transformers: checkpoints where it is trained and they are turned on."""

    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(nn.Sequential(nn.Linear(32, 32), nn.Tanh()) for _ in range(2))
        self.is_on = False

    def gradient_checkpointing_enable(self):
        self.is_on = True

    def forward(self, x):
        for layer in self.layers:
            spared = self.is_on and self.training
            x = checkpoint(layer, x, use_reentrant=False) if spared else layer(x)
        return x


def switched():
    return Switched(), torch.rand(4, 32)


def evaluated():
    module, x = switched()
    return module.eval(), x


def computed():
    """An input that a layer before it gave, with its graph."""
    x = labelled()[0]
    return net(), nn.Linear(32, 32)(x)


def tried():
    """A pass before it is handed over, as to set up what is lazy."""
    found = step()
    found.module(found.args).sum().backward()
    return found
