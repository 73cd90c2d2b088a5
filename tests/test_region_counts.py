"""How much regions hold and compute again, to the tensor and the op.

Sources: JAX 0.10.2 and PyTorch 2.14.1, which agree on the counts of nested regions (JAX
`tests/api_test.py`, `test_remat_*`; PyTorch `torch.utils.checkpoint`, non-reentrant); the layered
silu network's as JAX counts them, the loss and the input left out.
"""

from __future__ import annotations

import functools
import json
from typing import Any

import pytest

from ckptcli import Plan, Tensor, device
from ckptcli.autodiff.regions import checkpoint
from ckptcli.checkpoint.strategies.registry import parse_strategy
from ckptcli.cli.main import run_command
from ckptcli.events import BackwardStarted, Recorder
from ckptcli.measure.judge import judge
from ckptcli.profiling.memory_pass import MemoryPass, memory_pass
from ckptcli.profiling.profile import profile
from ckptcli.workloads.silu import SiluWorkload
from tests.helpers import leaf, of_type, required, unwatched
from tests.regions import Program, own_output, run, runs_again, sin

# strategy -> tensors held without parameters and input, matmuls and sigmoids computed again
SILU_6 = {
    "none": (17, 0, 0),
    "remat:every=6": (0, 6, 6),
    "remat:every=6,policy=dots_saveable": (6, 0, 6),
    "remat:every=6,policy=nothing_saveable": (0, 6, 6),
    "remat:every=6,policy=everything_saveable": (17, 0, 0),
    "remat": (5, 6, 6),
    "remat:every=1": (5, 6, 6),
    "remat:every=2": (2, 6, 6),
    "remat:every=3": (1, 6, 6),
    "remat:every=1,last=plain": (7, 5, 5),
    "remat:every=2,last=plain": (7, 4, 4),
    "remat:every=3,last=plain": (9, 3, 3),
    "remat:every=6,last=plain": (17, 0, 0),
    "remat:every=2,policy=dots_saveable": (8, 0, 6),
    "remat:every=2,policy=dots_with_no_batch_dims_saveable": (8, 0, 6),
    "remat:every=6,names=p": (6, 0, 6),
    "remat:every=6,policy=save_only_these_names(p)": (6, 0, 6),
    "remat:every=6,policy=save_any_names_but_these(s,h)": (6, 0, 6),
    "remat:every=6,names=h": (5, 6, 6),
    "remat:every=6,names=s": (6, 6, 0),
    "remat:every=6,names=p+s": (12, 0, 0),
    "remat:every=6,policy=dots_saveable,names=s": (12, 0, 0),
    "segments:6": (5, 6, 6),
    "segments:3": (2, 6, 6),
    "segments:1": (0, 6, 6),
    "sqrt": (1, 6, 6),
}


def silu_pass(strategy: str, layers: int = 6, n: int = 64) -> MemoryPass:
    return memory_pass(SiluWorkload(layers, n), device(), parse_strategy(strategy), workspace=False)


@functools.cache
def silu_digest() -> str:
    return silu_pass("none").outcome.grad_sha256


@pytest.mark.sampled(5)
@pytest.mark.parametrize("strategy", SILU_6)
def test_what_the_silu_network_holds_and_computes_again(strategy: str) -> None:
    found = silu_pass(strategy)
    again = found.outcome.recomputed_by_op
    counts = found.memory.saved_tensors, again.get("matmul", 0), again.get("sigmoid", 0)
    assert counts == SILU_6[strategy]
    assert found.outcome.grad_sha256 == silu_digest()


@pytest.mark.slow
def test_the_command_says_the_same(capsys: pytest.CaptureFixture[str]) -> None:
    strategies = ["none", "remat:every=2,policy=dots_saveable", "remat:every=6,names=p"]
    options = [option for strategy in strategies for option in ("-s", strategy)]
    assert run_command(["run", "-l", "6", "--n", "64", "--reps", "1", "--json", *options]) == 0
    record = json.loads(capsys.readouterr().out)
    for entry in record["strategies"]:
        again = entry["recomputed_by_op"]
        counts = entry["saved_tensors"], again.get("matmul", 0), again.get("sigmoid", 0)
        assert counts == SILU_6[entry["strategy"]]


@pytest.mark.sampled(7)
@pytest.mark.parametrize("strategy", SILU_6)
def test_the_trace_names_what_is_held(strategy: str) -> None:
    found = silu_pass(strategy)
    fates = [node.fate for node in found.trace.nodes]
    assert fates.count("saved") == found.memory.saved_tensors
    assert fates.count("recomputed") == sum(found.outcome.recomputed_by_op.values())


def halving(ops: list[Program], region: Any) -> Program:
    """JAX's recipe: the first half in a region, the second not; leaves of two."""
    if len(ops) <= 2:
        return lambda x: functools.reduce(lambda value, op: op(value), ops, x)
    middle = len(ops) // 2
    first, second = halving(ops[:middle], region), halving(ops[middle:], region)
    return lambda x: second(region(first)(x))


def chain(depth: int, op: Program, region: Any) -> Program:
    """region(op after region(op after ...))."""
    if depth == 0:
        return op
    inner = chain(depth - 1, op, region)
    return region(lambda x: op(inner(x)))


def pure(depth: int, op: Program, region: Any) -> Program:
    """A region in a region in a region around one op."""
    return op if depth == 0 else region(pure(depth - 1, op, region))


def count(build: Any) -> int:
    """Ops that ran again in the backward pass of the sum."""
    return len(runs_again(lambda region: lambda x: build(region)(x).sum(), [[0.3, 0.7]]))


@pytest.mark.parametrize(("op", "counts"), [(own_output, (2, 8, 24)), (sin, (1, 5, 17))])
def test_recursive_halving(op: Program, counts: tuple[int, ...]) -> None:
    found = tuple(count(lambda region, n=n: halving([op] * n, region)) for n in (4, 8, 16))
    assert found == counts


@pytest.mark.parametrize(("op", "counts"), [(own_output, (2, 5, 9, 14)), (sin, (1, 3, 6, 10))])
def test_chain_nesting(op: Program, counts: tuple[int, ...]) -> None:
    """jax#2737: d(d + 3) / 2 for an op that reads its own output, else d(d + 1) / 2."""
    found = tuple(count(lambda region, d=d: chain(d, op, region)) for d in (1, 2, 3, 4))
    assert found == counts


@pytest.mark.parametrize(("op", "each"), [(own_output, 1), (sin, 0)])
def test_pure_nesting(op: Program, each: int) -> None:
    """However deep, a value is computed again once."""
    assert {count(lambda region, d=d: pure(d, op, region)) for d in (1, 2, 3, 8)} == {each}


def test_a_weight_shared_by_three_regions() -> None:
    """DeepSpeed#2103: the gradient of a shared weight is the sum over its regions, once each."""
    region = checkpoint(lambda h, w: (h * w).sin())
    gradients, again = run(lambda w, x: region(region(region(x, w), w), w), [2.0], [3.0])
    assert gradients[0].item() == pytest.approx(4.282094549258964, rel=1e-15)
    assert gradients[1].item() == pytest.approx(3.181724599667753, rel=1e-15)
    assert again == ["mul"] * 3


@pytest.mark.parametrize("unused_first", [True, False])
def test_an_unused_output_is_not_computed_again(unused_first: bool) -> None:
    """PyTorch computes again what stands before the used output in the text; we and JAX do not."""

    def build(region: Any) -> Program:
        def block(x: Tensor) -> tuple[Tensor, Tensor]:
            if unused_first:
                b = x.cos().exp().tanh()
                return x.exp().sin(), b
            a = x.exp().sin()
            return a, x.cos().exp().tanh()

        return lambda x: region(block)(x)[0].sum()

    assert runs_again(build, [[0.3, 0.7]]) == ["exp"]


@pytest.mark.parametrize(
    ("strategy", "layers", "sizes"),
    [
        ("remat:every=3", 10, [4, 3, 3]),
        ("remat:every=3", 9, [3, 3, 3]),
        ("remat:every=20", 10, [10]),
        ("remat", 3, [1, 1, 1]),
        ("sqrt", 1, [1]),
        ("sqrt", 10, [4, 3, 3]),
        ("sqrt", 16, [4, 4, 4, 4]),
        ("sqrt", 100, [10] * 10),
        ("segments:4", 10, [3, 3, 2, 2]),
        ("segments:7", 10, [2, 2, 2, 1, 1, 1, 1]),
        ("segments:20", 3, [1, 1, 1]),
    ],
)
def test_sizes_of_regions_differ_by_at_most_one(
    strategy: str, layers: int, sizes: list[int]
) -> None:
    """Megatron-LM#1807: layers that do not divide evenly; every layer is in one region."""
    regions = parse_strategy(strategy).layer_regions(layers)
    assert regions is not None
    assert [region.size for region in regions] == sizes
    assert all(region.policy is not None for region in regions)
    dev = unwatched(strategy)
    seen = [(layer, dev.region is not None) for layer in dev.layers(layers)]
    assert seen == [(layer, True) for layer in range(layers)]
    assert dev.region is None


def test_last_plain_leaves_the_last_region_alone() -> None:
    dev = unwatched("remat:every=3,last=plain")
    assert [dev.region is not None for _ in dev.layers(10)] == [True] * 7 + [False] * 3


def test_one_region_around_everything_is_held_only() -> None:
    """jax#19822: the whole function in one region holds nothing and peaks as high."""
    tensor_bytes = 64 * 64 * 4
    record = profile(SiluWorkload(8, 64), ["none", "remat:every=8"], plan=Plan(reps=1, warmup=0))
    none, whole = record.rows
    assert whole.memory.saved_tensors == 0
    peaks = (none.memory.ledger_peak_backward_bytes, whole.memory.ledger_peak_backward_bytes)
    assert peaks[1] >= peaks[0] - tensor_bytes
    found = judge(whole, none, record)
    assert found is not None
    assert found.word == "held only"


def test_regions_of_one_layer_stay_under_what_is_held_and_one_layer() -> None:
    """pytorch#193193: a backward that holds several blocks at once peaks too high."""
    tensor_bytes = 64 * 64 * 4
    memory = silu_pass("remat", layers=8).memory
    working_set = 6 * tensor_bytes  # m, s, gradients of h, s, m and the weight
    held_bytes = memory.after_forward_bytes
    assert memory.ledger_peak_backward_bytes <= held_bytes + working_set


def test_a_region_shares_what_it_captures() -> None:
    """pytorch#125591: one captured matrix in many regions is held once."""
    dev = unwatched("none")
    c, x = leaf(dev, [[0.5, 0.25], [0.0, 1.0]], tracked=False), leaf(dev, [[1.0, 2.0]])
    block = checkpoint(lambda h: h.matmul(c).sin())
    h = x
    for _ in range(50):
        h = block(h)
    held = {id(value) for value in _held_values(h)}
    assert len(held) == 51  # c, x and what goes from region to region
    assert id(c.value) in held


def _held_values(root: Tensor) -> list[Any]:
    values, seen, stack = [], set(), [root.node]
    while stack:
        node = stack.pop()
        if node.id not in seen:
            seen.add(node.id)
            stack.extend(node.parents)
            kept = (*node.saved_values, *node.backup_values)
            values += [value for value in kept if value is not None]
    return values


@pytest.mark.parametrize(
    ("strategy", "counts"),
    [
        ("remat", {0: 1, 1: 2, 2: 2, 3: 2, 6: 2, 9: 2}),
        ("remat:every=2", {0: 1, 1: 2, 2: 2, 3: 2, 9: 2}),
        ("segments:1", {0: 1, 1: 2, 2: 2, 3: 2}),
        (
            "remat:policy=dots_saveable",
            {1: 1, 2: 1, 3: 1, 4: 3, 6: 1, 7: 3, 9: 1, 10: 3},
        ),
    ],
)
def test_what_a_region_takes_from_outside_is_required_once(
    strategy: str, counts: dict[int, int]
) -> None:
    """By the region, beside each step that holds it; and nothing of it is dropped."""
    recorder = Recorder()
    dev = device().autodiff().gradient_checkpointing(parse_strategy(strategy))
    SiluWorkload(3, 4).load(dev.watched_by(recorder)).forward().root.backward()
    assert required(recorder.events) == counts
    (started,) = of_type(recorder.events, BackwardStarted)
    assert started.dropped_backups == ()
