"""Faults that checkpointing has had in public, each as a program of ours that must not show it.

The references are those of the public threads. Here: inputs, captured values, constants, outputs;
`test_region_choices` has policies and names, `test_region_passes` passes, lifetimes and errors.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ckptcli import Tensor
from ckptcli.autodiff.regions import checkpoint
from ckptcli.errors import DeviceError
from tests.helpers import backward, gradient, held_ids, leaf, unwatched, watched
from tests.regions import Program, X, run, runs_again

W = [[0.5, -0.2, 0.1], [0.3, 0.8, -0.6], [0.2, 0.1, 0.9]]
V = [[0.1, 0.7, -0.3], [-0.5, 0.4, 0.2], [0.6, -0.1, 0.3]]


def test_a_weight_captured_by_the_region_gets_its_gradient() -> None:
    """unsloth-zoo#1275, flux-2-swift-mlx#41: captured values were constants to the region."""

    def build(region: Any) -> Program:
        def program(x: Tensor, w: Tensor, v: Tensor) -> Tensor:
            return region(lambda h: h.matmul(w).tanh().matmul(v).sin())(x).sum()

        return program

    assert runs_again(build, X, W, V) == ["matmul", "tanh", "matmul"]


def test_a_region_over_captured_tensors_alone() -> None:
    """unsloth-zoo#1275: not one tensor among the arguments."""

    def build(region: Any) -> Program:
        return lambda x, w: region(lambda: x.matmul(w).sin())().sum()  # type: ignore[no-any-return]

    assert runs_again(build, X, W) == ["matmul"]


def test_a_captured_intermediate_value_is_held_not_detached() -> None:
    """unsloth-zoo#1275: the captured value is itself an output of ops."""

    def build(region: Any) -> Program:
        def program(x: Tensor, w: Tensor) -> Tensor:
            h = x.matmul(w)
            return region(lambda y: (y * h).sin())(x.exp()).sum()

        return program

    assert runs_again(build, X, W) == ["mul"]


def test_keyword_arguments_are_inputs() -> None:
    """Megatron-LM#4765: tensors passed by keyword were not tracked, their gradients dropped."""

    def build(region: Any) -> Program:
        block = region(lambda *, h, weight: h.matmul(weight).sin())
        return lambda x, w: block(h=x, weight=w).sum()

    assert runs_again(build, X, W) == ["matmul"]


def test_tensors_in_nested_containers_are_inputs() -> None:
    """Megatron-LM#4765: tensors inside dicts, lists and tuples."""

    def build(region: Any) -> Program:
        def block(state: dict[str, Any]) -> dict[str, Any]:
            (w, (v,)) = state["weights"]
            h = state["h"].matmul(w).sin()
            return {"h": [h.matmul(v).cos()], "aux": (h,)}

        def program(x: Tensor, w: Tensor, v: Tensor) -> Tensor:
            out = region(block)({"h": x, "weights": [w, (v,)]})
            return (out["h"][0] * out["aux"][0]).sum()

        return program

    assert runs_again(build, X, W, V) == ["matmul", "sin", "matmul"]


def test_arguments_that_are_no_tensors_pass_through() -> None:
    """Numbers, strings, None and arrays are handed on as they are."""

    def build(region: Any) -> Program:
        def block(a: float, x: Tensor, b: None, *, mode: str, table: Any) -> tuple[Tensor, str]:
            assert b is None
            assert table is TABLE
            return (x * a).sin(), mode

        return lambda x: region(block)(2.0, x, None, mode="m", table=TABLE)[0].sum()  # type: ignore[no-any-return]

    assert runs_again(build, X) == ["mul_scalar"]


TABLE = np.arange(3.0)


def test_without_any_tensor_it_says_so() -> None:
    with pytest.raises(DeviceError, match="finds no tensor among its arguments"):
        checkpoint(lambda x: x)(1.0)


def test_the_first_layer_after_raw_data_gets_its_gradient() -> None:
    """pytorch#7617: no input requires a gradient, the captured weight does."""

    def build(region: Any) -> Program:
        return lambda x, w: region(lambda data: data.matmul(w).sin())(x).sum()  # type: ignore[no-any-return]

    assert runs_again(build, X, W, constants=[0]) == ["matmul"]


def test_a_frozen_weight_gets_no_gradient_the_other_does() -> None:
    """transformers#21381, #23170, LoRA#120: frozen and trained weights in one region."""

    def build(region: Any) -> Program:
        def program(x: Tensor, w: Tensor, v: Tensor) -> Tensor:
            return region(lambda h: h.matmul(w).tanh().matmul(v).sin())(x).sum()

        return program

    assert runs_again(build, X, W, V, constants=[0, 1]) == ["matmul", "tanh", "matmul"]
    dev = unwatched("none")
    x, w, v = leaf(dev, X, False), leaf(dev, W, False), leaf(dev, V)
    gradients = backward(build(checkpoint)(x, w, v))
    assert gradients.wrt(w) is None
    assert gradients.wrt(x) is None
    assert len(gradients) == 1


def test_the_input_of_a_frozen_layer_is_not_held() -> None:
    """pytorch#7617: x @ w with w frozen needs w alone; nobody needs x."""
    dev = unwatched("none")
    x, w = leaf(dev, X), leaf(dev, W, False)
    h = x * 2.0
    with x.region("frozen"):
        y = h.matmul(w)
    assert held_ids(y.sum()) == {w.node.id}


def test_an_untracked_factor_is_no_reason_to_hold() -> None:
    """burn#2997: with a constant operand Burn falls back to holding; a region does not."""

    def build(region: Any) -> Program:
        def program(x: Tensor, c: Tensor) -> Tensor:
            return region(lambda h: ((h * c).exp() * c).sin())(x).sum()

        return program

    assert runs_again(build, X, [[2.0, -1.0, 0.5]], constants=[1]) == ["mul", "exp", "mul"]


def test_constants_computed_inside_are_computed_again() -> None:
    """burn#2997: an untracked parent broke the bookkeeping."""

    def build(region: Any) -> Program:
        def program(x: Tensor, c: Tensor) -> Tensor:
            return region(lambda h: (h * (c.exp() + 1.0)).sin())(x).sum()

        return program

    assert runs_again(build, X, X, constants=[1]) == ["exp", "add_scalar", "mul"]


def test_a_constant_of_a_region_can_be_used_outside() -> None:
    """burn#2997: the value leaves the region and is held by whoever uses it."""

    def build(region: Any) -> Program:
        return lambda x, c: (region(lambda k: k.exp())(c) * x).sum()  # type: ignore[no-any-return]

    assert runs_again(build, X, X, constants=[1]) == []


@pytest.mark.parametrize("order", [0, 1])
def test_a_stopped_output_stays_without_gradient(order: int) -> None:
    """pytorch#69508: a detached output came back requiring a gradient."""

    def build(region: Any) -> Program:
        def block(x: Tensor) -> list[Tensor]:
            outputs = [x.exp().sin(), x.exp().cos().detach()]
            return outputs[::-1] if order else outputs

        def program(x: Tensor) -> Tensor:
            first, second = region(block)(x)
            stopped = (second, first)[order]
            assert not stopped.node.tracked
            return (first * second).sum()

        return program

    assert runs_again(build, X) == ["exp"]


def test_a_value_stopped_inside_is_a_leaf_with_its_value() -> None:
    """jax: stop_gradient inside a region; the gradient does not flow through the recomputation."""

    def build(region: Any) -> Program:
        return lambda x: region(lambda h: h.exp() * h.exp().detach())(x).sum()  # type: ignore[no-any-return]

    runs_again(build, X)
    ((found,), _) = run(build(checkpoint), X)
    assert found.tolist() == (np.exp(X) * np.exp(X)).tolist()


def test_several_outputs_that_use_each_other() -> None:
    """Megatron-LM#1478: an auxiliary loss next to the output, from the same values."""

    def build(region: Any) -> Program:
        def block(x: Tensor) -> tuple[Tensor, Tensor]:
            h = x.exp()
            return h.sin(), (h * h).cos()

        def program(x: Tensor) -> Tensor:
            y, aux = region(block)(x)
            return (y.sum() + aux.sum() * 0.5) * 2.0

        return program

    assert runs_again(build, X) == ["exp", "mul"]


def test_a_region_may_return_its_input() -> None:
    """pytorch#26546: the output is a view of, or is, what went in."""

    def build(region: Any) -> Program:
        def program(x: Tensor) -> Tensor:
            same, row = region(lambda h: (h, h.exp().slice([(0, 1)])))(x)
            return (same * row).sum()

        return program

    assert runs_again(build, X) == []


def test_a_region_that_ends_in_relu_of_a_view_has_all_gradients() -> None:
    """pytorch#26546, #36383: the last op wrote into a view and the region was bypassed."""

    def build(region: Any) -> Program:
        return lambda x, w: region(lambda h: h.matmul(w)[0:1].relu())(x).sum()  # type: ignore[no-any-return]

    assert runs_again(build, X, W) == ["matmul", "slice"]


def test_each_layer_of_a_region_gets_its_own_input() -> None:
    """Megatron-LM#290: with several layers in a region each was given the first one's input."""

    def build(region: Any) -> Program:
        def program(x: Tensor, *weights: Tensor) -> Tensor:
            def block(h: Tensor) -> Tensor:
                for weight in weights:
                    h = h.matmul(weight).tanh()
                return h

            return region(block)(x).sum()  # type: ignore[no-any-return]

        return program

    assert runs_again(build, X, W, V, W) == ["matmul", "tanh", "matmul", "tanh", "matmul"]


def test_changing_an_array_after_the_forward_pass_changes_nothing() -> None:
    """PyTorch's own warning: a captured buffer changed before backward gives 20 instead of 2."""
    dev = unwatched("none")
    data, buffer = np.array([1.0]), np.array([1.0])
    x, b = leaf(dev, data), leaf(dev, buffer, False)
    root = checkpoint(lambda h: h * h * b)(x).sum()
    data[:] = 10.0
    buffer *= 10.0
    assert gradient(backward(root), x).tolist() == [2.0]


def test_changing_a_name_after_the_forward_pass_changes_nothing() -> None:
    """PyTorch's own warning: a global flag gave -0.416 instead of 0.540. Only ops run again."""
    flag = {"cos": False}
    dev = unwatched("none")
    x = leaf(dev, [1.0])
    root = checkpoint(lambda h: (h * 1.0).cos() if flag["cos"] else (h * 1.0).sin())(x)
    flag["cos"] = True
    assert gradient(backward(root), x).tolist() == [np.cos(1.0)]


def test_a_list_that_the_region_fills_is_filled_once() -> None:
    """transformers#28056, OpenTau#202: a cache was appended to again by the recomputation."""
    cache: list[Tensor] = []

    def block(x: Tensor) -> Tensor:
        cache.append(x.exp())
        return (cache[-1] * len(cache)).sin()

    (found,), again = run(lambda x: checkpoint(block)(x).sum(), X)
    assert len(cache) == 1
    assert found.tolist() == (np.cos(np.exp(X)) * np.exp(X)).tolist()
    assert again == ["exp", "mul_scalar"]


def test_python_in_a_region_runs_once() -> None:
    """pytorch#96136, fairscale#1035, Megatron-LM#1514: statistics and logs were written twice."""
    calls: list[int] = []

    def block(x: Tensor) -> Tensor:
        calls.append(len(calls))
        return x.exp().sin()

    for _ in range(3):
        run(lambda x: checkpoint(block)(checkpoint(block)(x)).sum(), X)
    assert calls == list(range(6))


def test_float32_is_computed_again_in_float32() -> None:
    """jax#22244: the fused forward kept more bits than the recomputed value."""
    dev, plain_dev = unwatched("none"), unwatched("none")
    found = []
    for each, region in ((dev, True), (plain_dev, False)):
        x = each.tensor(np.linspace(0.1, 3.0, 1000), "float32").require_grad()
        block = checkpoint(_long_chain) if region else _long_chain
        found.append(gradient(backward(block(x).sum()), x).tobytes())
    assert found[0] == found[1]


def _long_chain(x: Tensor) -> Tensor:
    for _ in range(5):
        x = (x.exp() * 0.1 + x.sin()).tanh()
    return x


def test_the_products_of_constants_alone_are_needed() -> None:
    """pytorch#130039: (a c) x + b y + (a b c) z held more than a, b and c."""
    dev, recorder = watched("none")
    a, b, c = (leaf(dev, [value], False) for value in (2.0, 3.0, 5.0))
    x, y, z = (leaf(dev, [value]) for value in (0.1, 0.2, 0.3))
    with x.region("sum"):
        root = (a * c) * x + b * y + (a * b * c) * z
    held = held_ids(root.sum())
    assert held == {tensor.node.id for tensor in (a, b, c)}
    gradients = backward(root)
    assert [gradient(gradients, t).item() for t in (x, y, z)] == [10.0, 3.0, 30.0]
    assert len([event for event in recorder.events if type(event).__name__ == "Recomputed"]) == 3


def test_the_last_matmul_of_a_region_is_not_computed_again() -> None:
    """pytorch#81448: "more than small": recomputation stops at the last value that is needed."""

    def build(region: Any) -> Program:
        def program(x: Tensor, w: Tensor, v: Tensor) -> Tensor:
            return region(lambda h: h.matmul(w).sigmoid().matmul(v))(x).sum()

        return program

    assert runs_again(build, X, W, V) == ["matmul", "sigmoid"]
