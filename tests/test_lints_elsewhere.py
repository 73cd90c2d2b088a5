"""What lints must not say: each of them next to a program that has almost its fault."""

from __future__ import annotations

import json

import pytest

from ckptcli.cli.main import run_command
from tests.program_kit import Command

TWO_PRODUCTS = """
import numpy as np
from ckptcli.autodiff.regions import checkpoint_name

def make(device):
    u, v = (device.tensor(np.full((4, 4), 0.1)).require_grad() for _ in range(2))
    x = device.tensor(np.full((4, 4), 0.2))

    def loss():
        h = x
        for _ in device.layers(1):
            p = checkpoint_name(h @ u, "p")
            h = (p.sigmoid() @ v).sigmoid()
        return h.sum()

    return loss
"""
ONE_PRODUCT = """
import numpy as np

def make(device):
    u = device.tensor(np.full((4, 4), 0.1)).require_grad()
    x = device.tensor(np.full((4, 4), 0.2))

    def loss():
        h = x
        for _ in device.layers(1):
            h = h @ u
        return h.sum()

    return loss
"""
NETWORK = ("--layers", "2", "--n", "8", "--reps", "1", "--json")


def lints(record_json: str, strategy: str) -> list[str]:
    """The warnings about a strategy, without its name in front."""
    start = f"{strategy}: "
    warnings: list[str] = json.loads(record_json)["warnings"]
    return [text.removeprefix(start) for text in warnings if text.startswith(start)]


def of_program(told: Command, program: str, strategy: str) -> list[str]:
    code, out, _ = told(program, "run", "--strategy", strategy, "--reps", "1", "--json")
    assert code == 0
    return lints(out, strategy)


def test_a_name_on_a_product_is_worth_it_though_another_one_runs_again(told: Command) -> None:
    """Names on cheap values beside products that run again are what is warned of."""
    found = of_program(told, TWO_PRODUCTS, "remat:names=p")
    assert [lint for lint in found if "name `p`" in lint] == []


def test_where_nothing_runs_again_only_the_region_is_said_to_do_nothing(told: Command) -> None:
    """The product's factors are from outside, so that its policy is not the reason."""
    (lint,) = of_program(told, ONE_PRODUCT, "remat:policy=dots_saveable")
    assert lint.startswith("1 region without effect: backward needs no value made inside")


@pytest.mark.parametrize(
    ("strategy", "is_around_everything"), [("remat:last=plain", False), ("segments:1", True)]
)
def test_a_region_beside_a_plain_layer_is_not_around_everything(
    strategy: str, is_around_everything: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_command(["run", "--strategy", strategy, *NETWORK]) == 0
    found = lints(capsys.readouterr().out, strategy)
    assert [" is around everything: " in lint for lint in found] == [True] * is_around_everything
