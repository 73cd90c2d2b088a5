"""The first primitive of a JAX program that makes what is not finite out of what is.

Loss and gradient are evaluated op by op, into every inner program, until an output has nan, or an
infinity, and no operand has.

Source: `jax.debug_nans`, which stops at the first jitted function and names nan alone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax
import numpy as np

from ckptcli.peers.jax_evaluate import bound, evaluate
from ckptcli.peers.jax_saved import Differentiable
from ckptcli.peers.jax_steps import step_into
from ckptcli.peers.jax_trial import blamed, place_of


class _Watch:
    """What was not finite first: an infinity, and nan."""

    def __init__(self) -> None:
        self.infinity: Any = None
        self.nan: Any = None

    def instead(self, equation: Any, operands: Sequence[Any]) -> Sequence[Any] | None:
        outputs = step_into(equation, operands, self.instead)
        if outputs is not None:
            return outputs
        outputs = bound(equation, operands)
        if self.nan is None and _makes(np.isnan, operands, outputs):
            self.nan = equation
        if self.infinity is None and _makes(_is_not_finite, operands, outputs):
            self.infinity = equation
        return outputs


def first_not_finite(program: Differentiable, text: str) -> str:
    """A sentence on what makes the first nan, or where there is none the first infinity.

    Raises:
        ProgramError: the function fails op by op.
    """
    watch = _Watch()
    with blamed(text):
        traced = jax.make_jaxpr(jax.value_and_grad(program.loss))(program.parameters, program.x)
        arguments = jax.tree_util.tree_leaves((program.parameters, program.x))
        evaluate(traced.jaxpr, traced.consts, arguments, watch.instead)
    if watch.nan is None and watch.infinity is None:
        return "op by op everything is finite: what is not, the compiled program makes alone"
    if watch.nan is None:
        return f"the first that is not finite is made by {place_of(watch.infinity)}"
    if watch.infinity is None or watch.infinity is watch.nan:
        return f"the first nan is made by {place_of(watch.nan)}"
    return (
        f"the first nan is made by {place_of(watch.nan)}, after the first infinity by "
        f"{place_of(watch.infinity)}"
    )


def _is_not_finite(array: Any) -> Any:
    return ~np.isfinite(array)


def _makes(test: Callable[[Any], Any], operands: Sequence[Any], outputs: Sequence[Any]) -> bool:
    """Whether an output has what no operand has."""
    return _has(test, outputs) and not _has(test, operands)


def _has(test: Callable[[Any], Any], values: Sequence[Any]) -> bool:
    return any(bool(np.any(test(_on_host(value)))) for value in values if _is_inexact(value))


def _is_inexact(value: Any) -> bool:
    dtype = getattr(value, "dtype", None)
    if dtype is None:
        return isinstance(value, float | complex)
    return bool(jax.dtypes.issubdtype(dtype, jax.numpy.inexact))


def _on_host(value: Any) -> Any:
    array = np.asarray(value)
    return array if array.dtype.kind in "fc" else array.astype(np.float32)
