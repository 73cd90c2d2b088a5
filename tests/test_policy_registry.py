"""Policies by name: what each is elsewhere, and that a new one is its file."""

from __future__ import annotations

import importlib.util
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import ckptcli.checkpoint.policies as package
from ckptcli.checkpoint.policies import (
    ValueInfo,
    described,
    dots_saveable,
    offload_dot_with_no_batch_dims,
    parse_policy,
    save_from_both_policies,
    save_only_these_names,
)
from ckptcli.checkpoint.policies.base import NoCounterpart
from ckptcli.checkpoint.policies.registry import _REGISTRY, registry
from ckptcli.checkpoint.strategies.registry import parse_strategy
from ckptcli.cli.main import run_command
from ckptcli.errors import UnknownNameError, UsageError

ARGUMENTS = {
    "save_only_these_names": "(a,b)",
    "save_any_names_but_these": "(a)",
    "save_and_offload_only_these_names": "(a|b)",
    "save_from_both_policies": "(dots_saveable,offload_dot_with_no_batch_dims)",
}

SIGMOIDS = """
from dataclasses import dataclass

from ckptcli.checkpoint.policies import BasePolicy, register


@register
@dataclass(frozen=True)
class SigmoidsSaveable(BasePolicy):
    keyword = "sigmoids_saveable"
    summary = "what sigmoids return"

    def __call__(self, value):
        return value.op == "sigmoid"

    def in_jax(self, policies):
        return lambda primitive, *_, **__: primitive.name == "logistic"

    def in_torch(self, ops):
        return frozenset({"sigmoid"})
"""


@pytest.fixture
def one_more(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """One policy more, whose file is all that there is of it."""
    (tmp_path / "sigmoids.py").write_text(SIGMOIDS)
    monkeypatch.setattr(package, "__path__", [*package.__path__, str(tmp_path)])
    yield
    _REGISTRY.pop("sigmoids_saveable", None)
    sys.modules.pop(f"{package.__name__}.sigmoids", None)


@pytest.mark.usefixtures("one_more")
def test_a_file_more_is_a_policy_more(capsys: pytest.CaptureFixture[str]) -> None:
    policy = parse_policy("save_from_both_policies(sigmoids_saveable,save_only_these_names(a))")
    assert policy(ValueInfo("sigmoid", None, 0, None)) is True
    assert policy(ValueInfo("sin", None, 0, None)) is False
    with pytest.raises(UnknownNameError, match="did you mean `sigmoids_saveable`"):
        parse_policy("sigmoid_saveable")
    with pytest.raises(UnknownNameError, match=r"known: .*sigmoids_saveable"):
        parse_policy("zzz")
    with pytest.raises(UsageError, match="takes no arguments"):
        parse_policy("sigmoids_saveable(a)")
    strategy = "remat:policy=sigmoids_saveable"
    regions = parse_strategy(strategy).layer_regions(2)
    assert regions is not None
    assert regions[0].policy == parse_policy("sigmoids_saveable")
    assert run_command(["log", "-l", "2", "-n", "4", "-s", strategy, "--explain"]) == 0
    assert "sigmoid" in capsys.readouterr().out


def test_nothing_is_left_of_it() -> None:
    assert len(registry()) == 10


def each() -> Iterator[tuple[str, Any]]:
    for name in registry():
        yield name, described(parse_policy(name + ARGUMENTS.get(name, "")))


def test_every_policy_can_be_described() -> None:
    for name, policy in each():
        assert policy.keyword == name
        assert policy.summary[0].islower()
        assert hash(policy) == hash(described(parse_policy(name + ARGUMENTS.get(name, ""))))


def test_who_moves_values_to_the_host() -> None:
    assert [name for name, policy in each() if policy.moves_to_host] == [
        "offload_dot_with_no_batch_dims",
        "save_and_offload_only_these_names",
        "save_from_both_policies",
    ]


TORCH_OPS = SimpleNamespace(
    products=frozenset({"mm"}),
    batched_products=frozenset({"bmm"}),
    convolutions=frozenset({"c"}),
    compute_bound=frozenset({"mm", "bmm", "c", "sum"}),
)


def test_what_policies_are_in_pytorch() -> None:
    saved = {}
    for name, policy in each():
        try:
            saved[name] = policy.in_torch(TORCH_OPS)
        except NoCounterpart as error:
            saved[name] = str(error)
    selective = "PyTorch's selective checkpointing"
    assert saved == {
        "nothing_saveable": frozenset(),
        "everything_saveable": None,
        "compute_bound_saveable": {"mm", "bmm", "c", "sum"},
        "dots_saveable": {"mm", "bmm", "c"},
        "dots_with_no_batch_dims_saveable": {"mm"},
        "offload_dot_with_no_batch_dims": f"{selective} moves nothing to the host",
        "save_from_both_policies": f"{selective} moves nothing to the host",
        "save_only_these_names": f"{selective} decides by op: it knows no names",
        "save_any_names_but_these": f"{selective} decides by op: it knows no names",
        "save_and_offload_only_these_names": f"{selective} decides by op: it knows no names",
    }


@pytest.mark.skipif(importlib.util.find_spec("jax") is None, reason="JAX is not installed")
@pytest.mark.slow
def test_every_policy_is_one_in_jax() -> None:
    """JAX asks a policy with a primitive; a product without batch dims tells them apart."""
    import jax

    product = jax.make_jaxpr(lambda a: a @ a)(jax.numpy.ones((2, 2))).eqns[0]
    union = save_from_both_policies(dots_saveable, offload_dot_with_no_batch_dims)
    with pytest.raises(NoCounterpart, match="JAX makes no union"):
        union.in_jax(jax.checkpoint_policies)
    answers = {}
    for name, policy in each():
        if policy == union:
            policy = save_from_both_policies(dots_saveable, save_only_these_names("a"))
        native = policy.in_jax(jax.checkpoint_policies)
        answer = native(product.primitive, **product.params)
        answers[name] = getattr(answer, "dst", answer is True)
    assert {name: answer for name, answer in answers.items() if answer} == {
        "everything_saveable": True,
        "compute_bound_saveable": True,
        "dots_saveable": True,
        "dots_with_no_batch_dims_saveable": True,
        "offload_dot_with_no_batch_dims": "pinned_host",
        "save_from_both_policies": True,
    }


def test_the_page_says_what_each_policy_says_of_itself() -> None:
    text = (Path(__file__).parents[1] / "docs/policies.md").read_text(encoding="utf-8")
    rows = dict(re.findall(r"^\| `([a-z_]+)(?:\([^`]*\))?` \| (.*) \|$", text, flags=re.M))
    assert {name: rows.get(name) for name in registry()} == {
        name: policy.summary for name, policy in registry().items()
    }
