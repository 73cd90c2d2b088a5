"""A transposed convolution scatters each input element, times the kernel, over its output.

Source: the shape formula of PyTorch's `ConvTranspose1d`; the values are those of two plain loops.
"""

from __future__ import annotations

import numpy as np
import pytest

from ckptcli.errors import CkptError
from tests.helpers import leaf, unwatched


def scattered(
    x: np.ndarray, weight: np.ndarray, stride: int, padding: int, padding_out: int, dilation: int
) -> np.ndarray:
    """The transposed convolution of [batch, in, n] with [in, out, k], without groups."""
    batch, _, count = x.shape
    _, channels, taps = weight.shape
    length = (count - 1) * stride + dilation * (taps - 1) + 1
    whole = np.zeros((batch, channels, length + padding_out))
    for place in range(count):
        for tap in range(taps):
            added = np.einsum("bi,io->bo", x[:, :, place], weight[:, :, tap])
            whole[:, :, place * stride + tap * dilation] += added
    return whole[:, :, padding : length + padding_out - padding]


@pytest.mark.parametrize("dilation", [1, 2])
@pytest.mark.parametrize("padding_out", [0, 1])
@pytest.mark.parametrize("padding", [0, 1])
@pytest.mark.parametrize("stride", [2, 3])
def test_values_are_those_of_two_loops(
    stride: int, padding: int, padding_out: int, dilation: int
) -> None:
    rng = np.random.default_rng(3)
    x, weight = rng.standard_normal((2, 3, 4)), rng.standard_normal((3, 2, 3))
    dev = unwatched("none")
    found = leaf(dev, x).conv_transpose1d(
        leaf(dev, weight),
        stride=stride,
        padding=padding,
        padding_out=padding_out,
        dilation=dilation,
    )
    expected = scattered(x, weight, stride, padding, padding_out, dilation)
    np.testing.assert_allclose(found.numpy(), expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("op", ["conv1d", "conv_transpose1d"])
@pytest.mark.parametrize("shape", [(1,), (4,), (2, 1), (1, 2, 1)])
def test_a_bias_is_one_number_a_channel(op: str, shape: tuple[int, ...]) -> None:
    """Anything that only broadcasts would have no gradient of its own shape."""
    dev = unwatched("none")
    x, weight = leaf(dev, np.ones((1, 2, 3))), leaf(dev, np.ones((2, 2, 1)))
    with pytest.raises(CkptError, match="bias of shape"):
        getattr(x, op)(weight, leaf(dev, np.ones(shape)))
