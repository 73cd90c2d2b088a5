"""Lints: what of regions, policies and names is not what was meant, each with the fix."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from ckptcli import Device, Plan, Tensor, device
from ckptcli.autodiff.regions import checkpoint, checkpoint_name
from ckptcli.checkpoint.lints import PassFacts, region_lints
from ckptcli.checkpoint.policies import (
    Policy,
    dots_saveable,
    everything_saveable,
    nothing_saveable,
    save_from_both_policies,
    save_only_these_names,
)
from ckptcli.checkpoint.strategies.registry import parse_strategy
from ckptcli.cli.main import run_command
from ckptcli.profiling.memory_pass import memory_pass
from ckptcli.profiling.profile import profile
from ckptcli.units import size
from ckptcli.workloads.silu import SiluWorkload
from tests.helpers import backward, leaf
from tests.regions import X

W = [[0.5, -0.2, 0.1], [0.3, 0.8, -0.6], [0.2, 0.1, 0.9]]


def lints(program: Callable[..., Tensor], *leaves: Any, strategy: str = "none") -> list[str]:
    facts = PassFacts()
    chosen = parse_strategy(strategy)
    dev = device().autodiff().gradient_checkpointing(chosen).watched_by(facts)
    backward(program(*[leaf(dev, data) for data in leaves]))
    return region_lints(facts, chosen.follows_marks)


def silu_lints(strategy: str, layers: int = 6) -> list[str]:
    workload = SiluWorkload(layers, 8)
    found = memory_pass(workload, device(), parse_strategy(strategy), traced=False).lints
    assert all(lint.startswith(f"{strategy}: ") for lint in found)
    return [lint.removeprefix(f"{strategy}: ") for lint in found]


def two_regions(block: Callable[[Tensor], Tensor], policy: Policy) -> Callable[[Tensor], Tensor]:
    """More than one region, so that none is around everything."""

    def program(x: Tensor) -> Tensor:
        return checkpoint(block, policy)(checkpoint(block, policy)(x)).sum()

    return program


def named_block(h: Tensor) -> Tensor:
    return checkpoint_name((h + 1.0).exp(), "e").sin()


@pytest.mark.parametrize(
    "strategy",
    [
        "none", "balanced", "remat", "remat:every=2", "remat:every=3,names=p", "sqrt",
        "remat:every=2,policy=dots_saveable", "segments:6", "remat:every=2,last=plain",
        "remat:every=2,names=p+s",
    ],
)  # fmt: skip
def test_what_works_is_not_warned_of(strategy: str) -> None:
    assert silu_lints(strategy) == []


def test_a_name_that_matches_nothing() -> None:
    assert silu_lints("remat:every=3,names=q") == [
        "name `q` matches no value: the program names `h`, `p`, `s`"
    ]
    program = two_regions(lambda h: (h + 1.0).sin(), save_only_these_names("residual"))
    assert lints(program, X) == [
        "name `residual` matches no value: name values with `checkpoint_name`"
    ]


def test_a_name_in_a_union_or_a_refusal_that_matches_nothing() -> None:
    both = save_from_both_policies(dots_saveable, save_only_these_names("e", "f"))
    assert lints(two_regions(named_block, both), X) == [
        "name `f` matches no value: the program names `e`"
    ]
    found = silu_lints("remat:every=3,policy=save_any_names_but_these(s,h,hh)")
    assert found == ["name `hh` matches no value: the program names `h`, `p`, `s`"]


@pytest.mark.parametrize(("name", "spared"), [("h", "4 mul"), ("s", "6 sigmoid")])
def test_a_name_that_spares_no_product(name: str, spared: str) -> None:
    """What users name first: the layer's output costs tensors, and every matmul runs again."""
    (found,) = silu_lints(f"remat:every=3,names={name}")
    values = spared.split()[0]
    assert found == (
        f"name `{name}` holds {values} values ({size(int(values) * 256)}) and spares {spared}, but "
        "6 matmul run again all the same: name what they return"
    )


def test_a_saved_name_whose_producer_runs_again_all_the_same() -> None:
    def program(x: Tensor) -> Tensor:
        inner = checkpoint(named_block, save_only_these_names("e"))
        return checkpoint(lambda h: inner(h).cos() * 2.0)(x).sum()

    found = lints(program, X)
    assert found[0] == (
        "region `named_block` saves 1 value named `e`, but the producer runs again all the same "
        "(1 exp): the region around it does not save them, give it the same policy"
    )


def test_a_name_whose_values_are_never_needed() -> None:
    """jax#23869: the block's output is held already, as the next block's input."""
    assert silu_lints("remat:names=h") == [
        "name `h` allows 6 values that backward never takes from its region: it changes nothing, "
        "drop the name"
    ]


def test_a_policy_whose_values_are_never_needed() -> None:
    def only_products(x: Tensor, w: Tensor) -> Tensor:
        block = checkpoint(lambda h: (h + 1.0).sin().matmul(w), dots_saveable)
        return block(block(x)).sum()

    assert lints(only_products, X, W) == [
        "the policy allows 2 values (2 matmul) that backward never takes from their regions: it "
        "changes nothing, allow others"
    ]


def test_a_name_that_the_policy_saves_already() -> None:
    assert silu_lints("remat:every=3,policy=dots_saveable,names=p") == [
        "name `p` adds nothing: the policy saves its 6 values already"
    ]


def test_a_constant_that_switches_saving_off() -> None:
    """burn#2997: the fallback is silent there."""

    def program(x: Tensor) -> Tensor:
        c = x.device.tensor([[2.0, 3.0, 4.0]], "float64")
        return ((x.exp() * c).sin() * c).cos().sum()

    assert lints(program, X, strategy="balanced") == [
        "node 3 (mul) is held although it is memory bound, since its operand 1 is a constant "
        "(Burn's fallback; 2 such nodes, 48 B): use a scalar or a tensor that requires a gradient "
        "there, or a region"
    ]
    assert lints(program, X, strategy="none") == []


def test_a_constant_on_a_value_that_nobody_needs_is_no_matter() -> None:
    def program(x: Tensor) -> Tensor:
        return (x.exp() * x.device.tensor([[2.0, 3.0, 4.0]], "float64")).sum()

    assert lints(program, X, strategy="balanced") == []


@pytest.mark.parametrize(
    ("strategy", "text"),
    [
        (
            "remat:policy=everything_saveable",
            "6 regions without effect: the policy saves all that backward needs (6 matmul, "
            "6 sigmoid), use one that saves less",
        ),
        (
            "remat:every=6,last=plain",
            "last=plain leaves all 6 layers plain, since they make one region: use a smaller "
            "every=K",
        ),
        ("segments:9", "9 regions of 6 layers are 6: use segments:6"),
    ],
)
def test_an_option_without_effect(strategy: str, text: str) -> None:
    assert silu_lints(strategy) == [text]


def test_regions_of_more_layers_than_there_are() -> None:
    found = silu_lints("remat:every=9")
    assert found[0] == (
        "every=9 is more than the 6 layers, which make one region: use a smaller number"
    )


def test_a_region_of_ops_whose_backward_needs_nothing() -> None:
    """jax#12792: only linear ops; nothing to drop."""
    assert lints(two_regions(lambda h: (h + 1.0) * 2.0, nothing_saveable), X) == [
        "2 regions without effect: backward needs no value made inside, put ops into them whose "
        "backward does"
    ]


def test_a_region_around_everything() -> None:
    """jax#19822: slower, and the same peak."""
    assert silu_lints("remat:every=6") == [
        "region `layers 0 to 5` is around everything: it holds less after forward, but its 17 "
        "values come back at once, so the peak of backward stays: use several regions, such as "
        "`remat:every=K` with a smaller K"
    ]


def test_a_region_with_regions_inside_is_not_warned_of() -> None:
    """Nested, the values do not come back at once."""

    def program(x: Tensor) -> Tensor:
        inner = checkpoint(lambda h: (h + 1.0).sin().cos())
        return checkpoint(lambda h: inner(inner(h)))(x).sum()

    assert lints(program, X) == []


def test_facts_come_from_events_alone() -> None:
    """Without anybody watching nothing is collected."""
    dev: Device = device().autodiff()
    x = leaf(dev, X)
    facts = PassFacts()
    backward(checkpoint(named_block, everything_saveable)(x).sum())
    assert (facts.created, facts.regions, region_lints(facts)) == ({}, [], [])


def test_lints_are_warnings_of_the_record() -> None:
    record = profile(
        SiluWorkload(4, 8), ["none", "remat:every=2,names=q"], plan=Plan(reps=1, warmup=0)
    )
    assert (
        "remat:every=2,names=q: name `q` matches no value: the program names `h`, `p`, `s`"
        in record.warnings
    )


def test_lints_are_printed_on_stderr(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["run", "-l", "4", "-n", "8", "--reps", "1", "-s", "remat:every=4"]
    assert run_command(arguments) == 0
    out, err = capsys.readouterr()
    assert "is around everything" in err
    assert "is around everything" not in out
    assert run_command([*arguments, "--quiet"]) == 0
    assert "is around everything" not in capsys.readouterr().err
