"""`remat:only=...`: some layers checkpointed, the others plain; bit for bit as without."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from ckptcli import device
from ckptcli.checkpoint.layer_choice import LayerChoice
from ckptcli.checkpoint.strategies.registry import parse_strategy
from ckptcli.cli.main import run_command
from ckptcli.errors import UsageError
from ckptcli.measure.conditions import parse_condition
from ckptcli.passes.run import run_pass
from ckptcli.peers.base import open_engines, regions_of
from ckptcli.profiling.memory_pass import memory_pass
from ckptcli.workloads.base import Workload
from ckptcli.workloads.silu import SiluWorkload
from ckptcli.workloads.trg import TrgWorkload
from tests.backend_kit import INSTALLED_ENGINES
from tests.helpers import same_bits


def grouped(strategy: str, count: int) -> list[tuple[int, bool]]:
    """Size of each group, and whether it is a region."""
    regions = parse_strategy(strategy).layer_regions(count)
    assert regions is not None
    return [(region.size, region.policy is not None) for region in regions]


# Which layers.


@pytest.mark.parametrize(
    ("text", "ranges"),
    [
        ("0", ((0, 0),)),
        ("3..7", ((3, 7),)),
        ("5,0,2", ((0, 0), (2, 2), (5, 5))),
        ("3,4,5", ((3, 5),)),
        ("2..4,3..9,1", ((1, 9),)),
        ("0..999999999", ((0, 999999999),)),
    ],
)
def test_how_layers_are_written(text: str, ranges: tuple[tuple[int, int], ...]) -> None:
    assert LayerChoice.parse("only", text).ranges == ranges


@pytest.mark.parametrize("text", ["", "a", "-1", "3..", "..3", "7..3", "1,,2", "1.5", "3-4", "0x1"])
def test_what_names_no_layer(text: str) -> None:
    with pytest.raises(UsageError, match="names layers by index, and"):
        LayerChoice.parse("only", text)


@pytest.mark.parametrize(
    ("strategy", "count", "groups"),
    [
        ("remat:only=2", 4, [(2, False), (1, True), (1, False)]),
        ("remat:only=0,2", 4, [(1, True), (1, False), (1, True), (1, False)]),
        ("remat:only=2..3", 4, [(2, False), (1, True), (1, True)]),
        ("remat:only=2,3,every=2", 4, [(2, False), (2, True)]),
        ("remat:every=2,only=0..4", 6, [(2, True), (2, True), (1, True), (1, False)]),
        ("remat:only=1,7", 4, [(1, False), (1, True), (2, False)]),
        ("remat:only=9", 4, [(4, False)]),
        ("remat:only=0..3", 4, [(1, True)] * 4),
        ("remat:only=0", 0, []),
    ],
)
def test_the_groups_of_a_choice(strategy: str, count: int, groups: list[tuple[int, bool]]) -> None:
    assert grouped(strategy, count) == groups


@given(
    st.lists(st.tuples(st.integers(0, 12), st.integers(0, 4)), min_size=1, max_size=5),
    st.integers(1, 10),
    st.integers(1, 4),
)
@settings(max_examples=200, deadline=None)
def test_the_layers_named_are_in_regions_and_no_others(
    ranges: list[tuple[int, int]], count: int, every: int
) -> None:
    text = ",".join(f"{first}..{first + more}" for first, more in ranges)
    chosen = {layer for first, more in ranges for layer in range(first, first + more + 1)}
    found = []
    for size, is_region in grouped(f"remat:only={text},every={every}", count):
        found += [is_region] * size
    assert found == [layer in chosen for layer in range(count)]


def test_every_layer_named_is_as_none_left_out() -> None:
    assert grouped("remat:only=0..8,every=3", 9) == grouped("remat:every=3", 9)


@pytest.mark.parametrize(
    "text", ["remat:only=", "remat:only=1,last=plain", "remat:2", "remat:every=1,2", "remat:only=x"]
)
def test_what_is_no_choice(text: str) -> None:
    with pytest.raises(UsageError):
        parse_strategy(text)


# ckpt's own engine.


def same_as_none(workload: Workload, strategy: str) -> bool:
    passes = [
        run_pass(workload, parse_strategy(name), device().backend) for name in ("none", strategy)
    ]
    arrays = [[np.array(done.loss), *done.gradient_arrays().values()] for done in passes]
    return same_bits(*arrays)


@given(st.sets(st.integers(0, 5), min_size=1), st.integers(1, 3))
@settings(max_examples=25, deadline=None)
def test_a_choice_changes_no_bit(layers: set[int], every: int) -> None:
    strategy = f"remat:only={','.join(map(str, layers))},every={every}"
    assert same_as_none(SiluWorkload(6, 8), strategy)
    assert same_as_none(TrgWorkload(6, chi=4), strategy)


@pytest.mark.parametrize("only", ["3", "4", "3..4", "0,2,4"])
def test_a_choice_changes_no_bit_of_the_trg(only: str) -> None:
    assert same_as_none(TrgWorkload(5), f"remat:only={only}")


@pytest.mark.parametrize(
    ("only", "held", "again"),
    [
        ("0", 15, 1),  # of p, s, h: h is the next layer's input
        ("0..2", 11, 3),
        ("5", 15, 1),  # its input is held, its h nobody needs
        ("1,3", 13, 2),
        ("0..5", 5, 6),
    ],
)
def test_what_a_choice_holds_and_computes_again(only: str, held: int, again: int) -> None:
    """6 layers, n = 8: `none` holds 17 tensors."""
    found = memory_pass(SiluWorkload(6, 8), device(), parse_strategy(f"remat:only={only}"))
    assert found.memory.saved_tensors == held
    assert found.outcome.recomputed_by_op["matmul"] == again
    assert found.outcome.recomputed_by_op["sigmoid"] == again
    assert found.lints == ()


@pytest.mark.parametrize(
    ("strategy", "said"),
    [
        ("remat:only=2,6", "only names layer 6, and the 6 layers are 0 to 5"),
        ("remat:only=4..9", "only names layer 6, and the 6 layers are 0 to 5"),
        ("remat:only=7..9", "only names layer 7, and the 6 layers are 0 to 5"),
        ("remat:only=2..3,every=3", "every=3 is more than the 2 layers in a row that only names"),
    ],
)
def test_a_choice_without_effect_is_told(strategy: str, said: str) -> None:
    lints = memory_pass(SiluWorkload(6, 8), device(), parse_strategy(strategy)).lints
    assert any(said in lint for lint in lints), lints


def test_the_log_names_the_layers_that_are_regions(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command(["log", "-l", "4", "-n", "8", "-s", "remat:only=1..2", "--explain"]) == 0
    out = capsys.readouterr().out
    assert "layers 1 to 1" in out
    assert "layers 2 to 2" in out
    assert "layers 0" not in out
    assert "layers 3" not in out


def test_a_condition_may_name_a_range() -> None:
    assert parse_condition("remat:only=3..4.peak_bytes > 1").strategy == "remat:only=3..4"


def test_the_check_of_a_choice(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ("check", "-q", "--workload", "trg", "--steps", "5", "-s", "remat:only=3..4")
    assert run_command([*arguments, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)


# Other libraries.


@pytest.mark.slow
@pytest.mark.parametrize("engine", INSTALLED_ENGINES[:3])
def test_other_libraries_checkpoint_the_same_layers(engine: str) -> None:
    """Each layer in a region spares two tensors in PyTorch, three in JAX, but that the first one's
    input and the last one's output are none.
    """
    (opened,) = open_engines([engine])

    def figures(strategy: str) -> tuple[int, int]:
        regions = regions_of(parse_strategy(strategy), 6)
        found = opened.network(SiluWorkload(6, 16), regions).measure()
        again = found.recomputed_by_op or {}
        return found.memory.saved_tensors, again.get("matmul", 0)

    held, _ = figures("none")
    spared = 2 if engine == "torch" else 3
    assert figures("remat:only=2") == (held - spared, 1)
    assert figures("remat:only=1,3..4") == (held - 3 * spared, 3)
    assert figures("remat:only=0..5") == figures("remat")
