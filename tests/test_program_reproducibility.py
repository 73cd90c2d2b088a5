"""A program of the user's own has to do the same each time, or is told that it does not."""

from __future__ import annotations

import pytest

from tests.program_kit import Command, Opener


def test_the_seed_decides_the_draws(opened: Opener) -> None:
    program = """
def make(device):
    w = device.normal((3,)).require_grad()
    return lambda: (w * device.uniform((3,))).sum()
"""
    first, same, other = (opened(program, seed=seed) for seed in (0, 0, 1))
    assert first.parameters()["w"].tolist() == same.parameters()["w"].tolist()
    assert first.parameters()["w"].tolist() != other.parameters()["w"].tolist()
    assert not first.notes


@pytest.mark.parametrize("command", ["run", "check", "log", "saved"])
@pytest.mark.parametrize("where", ["weights", "loss"])
def test_a_program_that_draws_elsewhere_is_not_called_wrong(
    told: Command, command: str, where: str
) -> None:
    """Neither a strategy nor a gradient is blamed: the exit code is not 5."""
    program = f"""
import random

def make(device):
    w = device.tensor([random.random() if {where == "weights"} else 1.0]).require_grad()
    return lambda: w * (random.random() if {where == "loss"} else 1.0)
"""
    code, out, err = told(program, command)
    assert (code, out) == (1, "")
    assert "`mine.py:make` does something else each time: the loss is 0." in err
    assert "device.uniform" in err


def test_a_generator_seeded_inside_is_fine(opened: Opener) -> None:
    program = """
import random

def make(device):
    random.seed(7)
    w = device.tensor([random.random()]).require_grad()
    return lambda: w * w
"""
    assert opened(program).notes == ()


def test_a_loss_that_takes_another_batch_each_time_is_noted(told: Command) -> None:
    """Memory and gradients are those of the first call, and right."""
    program = """
def make(device):
    w = device.tensor([1.0]).require_grad()
    batches = iter(range(1, 1000))
    return lambda: w * float(next(batches))
"""
    code, _, err = told(program, "check")
    assert code == 0
    assert "warning: `mine.py:make`: the loss is 1.0 in its first call and 2.0 in the second" in err


def test_a_loss_that_grows_is_noted(opened: Opener) -> None:
    program = """
def make(device):
    w = device.tensor([1.0]).require_grad()
    kept = []
    def loss():
        kept.append(device.tensor([1.0]))
        return sum((w * one for one in kept[1:]), w * kept[0])
    return loss
"""
    notes = opened(program).notes
    assert "makes 2 nodes in its first call and 4 in the second" in notes[1]


def test_what_is_carried_over_ends_with_one_sentence(told: Command) -> None:
    program = """
def make(device):
    w = device.tensor([2.0]).require_grad()
    state = [w]
    def loss():
        state[0] = state[0] * w
        return state[0]
    return loss
"""
    code, _, err = told(program, "run", "--reps", "2")
    assert code == 1
    assert "which an earlier backward pass has used up" in err
