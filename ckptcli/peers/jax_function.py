"""A JAX function of the user's own, `FILE.py:MAKE`, as a function of arrays in lists.

`MAKE()` returns `(loss, params, *batch)`, any pytrees; `loss(params, *batch)` is a scalar. Two
attributes of `loss` say otherwise: `argnums`, which arguments the gradient is taken by, and
`has_aux`, that it returns `(scalar, anything)`.

A leaf is a parameter (an array of floating point in an argument of `argnums`), another array, or
neither. Of the last kind are strings, functions, None, and Python's own bool and int: they are what
they are in every pass, as a partition into arrays and the rest has it.

Invariant: all rows are made of the same arrays.

Source: `jax.value_and_grad`, `jax.tree_util`.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np

from ckptcli.checkpoint.user_code import is_user_code, load_name, running
from ckptcli.errors import UsageError
from ckptcli.units import count

SMALLER = "make the arrays of the function smaller"
_CONTRACT = "it returns (loss, params, *batch), where loss(params, *batch) is a scalar"


@dataclass(frozen=True, slots=True)
class UserFunction:
    """What `make()` returned, its arguments as leaves.

    Attributes:
        text: `FILE.py:MAKE`.
        loss: the function as it was given.
        tree: how the leaves make up the arguments.
        leaves: all of them; arrays are JAX's.
        names: of each leaf, `params['w']`.
        parameters, arrays: positions of what is differentiated, and of the other arrays.
        has_aux: whether the loss comes with something beside it.
    """

    text: str
    loss: Callable[..., Any]
    tree: Any
    leaves: Sequence[Any]
    names: Sequence[str]
    parameters: Sequence[int]
    arrays: Sequence[int]
    has_aux: bool

    @property
    def title(self) -> str:
        """`FILE.py:MAKE, 1,234 numbers in 4 arrays`."""
        size = sum(int(self.leaves[position].size) for position in self.parameters)
        numbers = count(size, "number", f"{size:,}")
        return f"{self.text}, {numbers} in {count(len(self.parameters), 'parameter')}"

    def parameter_leaves(self) -> list[Any]:
        """What the gradient is taken by, in order."""
        return [self.leaves[position] for position in self.parameters]

    def other_arrays(self) -> list[Any]:
        """The other arrays, in order."""
        return [self.leaves[position] for position in self.arrays]

    def parameter_names(self) -> list[str]:
        """The names of `parameter_leaves()`."""
        return [self.names[position] for position in self.parameters]

    def array_names(self) -> list[str]:
        """The names of `parameter_leaves()` and of `other_arrays()` after them."""
        return [self.names[position] for position in (*self.parameters, *self.arrays)]

    def scalar(self, parameters: Sequence[Any], arrays: Sequence[Any]) -> Any:
        """The loss as a function of both lists, shape ().

        Raises:
            UsageError: it is no real scalar of floating point.
        """
        leaves = list(self.leaves)
        for position, leaf in zip((*self.parameters, *self.arrays), (*parameters, *arrays)):
            leaves[position] = leaf
        result = self.loss(*jax.tree_util.tree_unflatten(self.tree, leaves))
        return self._checked(result)

    def _checked(self, result: Any) -> Any:
        if self.has_aux:
            if not isinstance(result, tuple) or len(result) != 2:
                raise UsageError(
                    f"the loss of `{self.text}` has `has_aux` and returns {_described(result)}",
                    "return (loss, anything)",
                )
            result = result[0]
        elif isinstance(result, tuple):
            raise UsageError(
                f"the loss of `{self.text}` returns a tuple, not a scalar",
                "set `loss.has_aux = True` if the loss comes first, or return it alone",
            )
        shape, dtype = getattr(result, "shape", ()), getattr(result, "dtype", None)
        if not _is_number(result) or shape != ():
            raise UsageError(
                f"the loss of `{self.text}` is {_described(result)}, not a scalar",
                "return a sum or a mean",
            )
        if dtype is not None and not jax.numpy.issubdtype(dtype, jax.numpy.floating):
            raise UsageError(
                f"the loss of `{self.text}` is {dtype}, which has no derivative",
                "return a real number of floating point",
            )
        return jax.numpy.asarray(result)


def load_function(text: str) -> UserFunction:
    """Run the file and call `MAKE`.

    Raises:
        UsageError: the file cannot be run, or what it makes is no function with parameters.
        ProgramError: `MAKE` fails; names the line.
    """
    if not is_user_code(text):
        raise UsageError(
            f"--function {text} is not FILE.py:MAKE", "write `--function model.py:make`"
        )
    return made_function(text, load_name(text))


def made_function(text: str, make: object) -> UserFunction:
    """What `MAKE` of the text gives.

    Raises:
        UsageError, ProgramError: as `load_function`.
    """
    if not callable(make):
        raise UsageError(f"`{text}` is not a function", _CONTRACT)
    with running(text, SMALLER):
        made = make()
    if not isinstance(made, tuple | list) or len(made) < 2 or not callable(made[0]):
        raise UsageError(f"`{text}` gives {_described(made)}", _CONTRACT)
    return _flattened(text, made[0], tuple(made[1:]))


def _flattened(text: str, loss: Callable[..., Any], arguments: tuple[Any, ...]) -> UserFunction:
    argnums = _argnums(text, loss, len(arguments))
    names = _argument_names(loss, len(arguments))
    paths, tree = jax.tree_util.tree_flatten_with_path(arguments)
    leaves = [_as_array(leaf) for _, leaf in paths]
    parameters, arrays = [], []
    for position, ((path, _), leaf) in enumerate(zip(paths, leaves)):
        if path[0].idx in argnums and _is_inexact(leaf):
            parameters.append(position)
        elif isinstance(leaf, jax.Array):
            arrays.append(position)
    if not parameters:
        where = ", ".join(names[number] for number in argnums)
        raise UsageError(
            f"`{text}` has no array of floating point in `{where}`: there is nothing to "
            "differentiate by",
            "give parameters first, or say with `loss.argnums` which argument has them",
        )
    return UserFunction(
        text,
        loss,
        tree,
        leaves,
        [names[path[0].idx] + jax.tree_util.keystr(path[1:]) for path, _ in paths],
        parameters,
        arrays,
        bool(getattr(loss, "has_aux", False)),
    )


def _argnums(text: str, loss: Callable[..., Any], most: int) -> tuple[int, ...]:
    """Which arguments are differentiated: the first, or what the loss says itself.

    Raises:
        UsageError: it says something else than numbers of arguments.
    """
    given = getattr(loss, "argnums", 0)
    numbers = tuple(given) if isinstance(given, tuple | list) else (given,)
    if not numbers or not all(type(n) is int and -most <= n < most for n in numbers):
        raise UsageError(
            f"`argnums` of the loss of `{text}` is {given!r}",
            f"it is a number, or a tuple of numbers, from 0 to {most - 1}",
        )
    return tuple(number % most for number in numbers)


def _argument_names(loss: Callable[..., Any], number: int) -> list[str]:
    """How the function calls its arguments; `argument 2` where it does not."""
    try:
        signature = inspect.signature(loss)
    except (TypeError, ValueError):
        signature = inspect.Signature()
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    known = [p.name for p in signature.parameters.values() if p.kind in kinds]
    return [known[n] if n < len(known) else f"argument {n}" for n in range(number)]


def _as_array(leaf: Any) -> Any:
    """JAX's array of an array, or of a number of floating point; anything else as it is."""
    if isinstance(leaf, jax.Array):
        return leaf
    if isinstance(leaf, np.ndarray | np.generic) and leaf.dtype.kind not in "OUSV":
        return jax.numpy.asarray(leaf)
    if isinstance(leaf, np.ndarray | np.generic) and jax.dtypes.issubdtype(
        leaf.dtype, jax.numpy.floating
    ):
        return jax.numpy.asarray(leaf)  # bfloat16 and its kind, which NumPy counts as void
    if isinstance(leaf, float | complex):
        return jax.numpy.asarray(leaf)
    return leaf


def _is_inexact(leaf: Any) -> bool:
    return isinstance(leaf, jax.Array) and jax.dtypes.issubdtype(leaf.dtype, jax.numpy.inexact)


def _is_number(value: Any) -> bool:
    return isinstance(value, jax.Array | np.ndarray | np.generic | float | int | complex)


def _described(value: Any) -> str:
    """What something is, for a message: dtype and shape of an array, the type of all else."""
    if hasattr(value, "dtype") and hasattr(value, "shape"):
        return f"an array {value.dtype}{list(value.shape)}"
    if isinstance(value, tuple | list):
        inner = ", ".join(type(item).__name__ for item in value[:4])
        return f"a {type(value).__name__} of {len(value)} ({inner})"
    return f"an object of type {type(value).__name__}"
