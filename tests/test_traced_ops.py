"""The ops of traced tensors: first and second gradients against differences, on every backend."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from ckptcli.backends import open_backend
from ckptcli.errors import InactiveOutputError
from ckptcli.traced import Tensor, Tracer, grad
from ckptcli.traced.ops import DECLARATIONS
from tests.backend_kit import NEEDS_TORCH
from tests.strict_backend import StrictBackend
from tests.traced_kit import POINT, checkpointed, number, slope

UNARY: dict[str, Callable[[Tensor], Any]] = {
    "add": lambda x: x + x.transpose(),
    "sub": lambda x: x - x.transpose() * 3.0,
    "rsub": lambda x: 2.0 - x,
    "mul": lambda x: x * x.transpose(),
    "div": lambda x: x / (x.transpose() + 5.0),
    "rdiv": lambda x: 1.0 / (x + 5.0),
    "scale": lambda x: x * 3.0 - 1.0,
    "divided by a number": lambda x: x / 4.0,
    "neg": lambda x: -x * x,
    "row": lambda x: x * x[:1, :],
    "column": lambda x: x / (x[:, :1] * x[:, :1] + 1.0),
    "scalar": lambda x: x * x.sum(),
    "vector": lambda x: x + x[1:2, :].reshape((3,)),
    "broadcast": lambda x: x[:1, :].broadcast_to((4, 3)) * 2.0,
    "sum_dim": lambda x: x.sum_dim(0) * x.sum_dim(1),
    "sqrt": lambda x: (x * x + 1.0).sqrt(),
    "ln": lambda x: (x * x + 1.0).ln(),
    "exp": lambda x: x.exp(),
    "sin": lambda x: x.sin(),
    "cos": lambda x: x.cos(),
    "tanh": lambda x: x.tanh(),
    "matmul": lambda x: x @ x @ x.transpose(),
    "permute": lambda x: x.reshape((3, 3, 1)).permute((2, 0, 1)) * x,
    "slice": lambda x: x[::2, 1:] * x[1:, :2],
    "u": lambda x: x.svd()[0] * x.svd()[0][:1, :],
    "s": lambda x: x.svd()[1],
    "v": lambda x: x.svd()[2] * x.svd()[2][:1, :],
    "all of svd": lambda x: (x.svd()[0] * x.svd()[1]) @ x.svd()[2].transpose() * x,
}
"""Programs that do not depend on the signs of singular vectors."""


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", UNARY)
def test_gradients_and_second_gradients_agree_with_differences(name: str) -> None:
    direction = np.array([[0.5, 0.1, -0.3], [0.2, -0.4, 0.6], [-0.1, 0.3, 0.2]])

    def gradients(data: Any, checkpoint: bool) -> tuple[float, Any, Any]:
        tracer = Tracer()
        x = tracer.tensor(data)
        y = UNARY[name](x)
        if checkpoint:
            y.checkpoint()
        value = (y * y).sum() + y.sum()
        first = grad(value, x)
        try:
            second = grad((first * tracer.constant(direction)).sum(), x).evaluate()
        except InactiveOutputError:
            second = np.zeros_like(data)
        return number(value), first.evaluate(), second

    value, first, second = gradients(POINT, checkpoint=False)
    along = float((first * direction).sum())
    assert along == pytest.approx(
        slope(lambda t: gradients(POINT + t * direction, False)[0], 0.0), rel=1e-8, abs=1e-9
    )
    twice = slope(
        lambda t: float((gradients(POINT + t * direction, False)[1] * direction).sum()), 0.0
    )
    assert float((second * direction).sum()) == pytest.approx(twice, rel=1e-6, abs=1e-8)
    for plain, through in zip((value, first, second), gradients(POINT, checkpoint=True)):
        assert np.asarray(plain).tobytes() == np.asarray(through).tobytes()


@pytest.mark.parametrize("name", UNARY)
@pytest.mark.parametrize(
    "backend", [StrictBackend, pytest.param(lambda: open_backend("torch"), marks=NEEDS_TORCH)]
)
def test_nothing_only_numpy_has_is_used(name: str, backend: Callable[[], Any]) -> None:
    def gradient(tracer: Tracer) -> Any:
        x = tracer.tensor(POINT)
        return grad(checkpointed(UNARY[name](x)).sum(), x).evaluate()

    np.testing.assert_allclose(
        gradient(Tracer(backend())), gradient(Tracer()), rtol=1e-12, atol=1e-13
    )


def test_every_op_is_differentiated_here() -> None:
    tracer = Tracer()
    used = set()
    for program in UNARY.values():
        x = tracer.tensor(POINT)
        stack = [program(x).node, grad(program(x).sum(), x).node]
        while stack:
            node = stack.pop()
            stack.extend(node.inputs)
            if node.op is not None:
                used.add(node.op.name)
    assert used == set(DECLARATIONS)
