"""Numbers and masks that a caller hands to an op, and what is no such thing.

Python counts a bool as an int, so that `x == 1.0` of anything but a tensor, handed on, would be
taken for 0 or 1 in silence. Here it is refused, with what to write.
"""

from __future__ import annotations

from typing import Any, NoReturn

from ckptcli.errors import OperandError


def number(value: Any, op: str) -> float:
    """`value` as a float.

    Raises:
        OperandError: it is a bool, or no number.
    """
    if type(value) is float:
        return value
    if _is_single_bool(value):
        raise OperandError(
            f"`{op}` takes a number, got the bool {value}",
            f"write {float(value)}, or a mask such as `x == 1.0` of a tensor",
        )
    if isinstance(value, str | bytes):
        _refuse_operand(op, value)
    try:
        return float(value)
    except (TypeError, ValueError):
        _refuse_operand(op, value)
    except OverflowError as error:
        raise OperandError(f"`{op}` takes a number that a float can hold: {error}") from error


def check_mask(mask: Any, op: str) -> None:
    """Refuse what stands for no element in particular.

    Raises:
        OperandError: a single bool or number, or a tensor of numbers.
    """
    if type(mask).__name__ == "Tensor" and hasattr(mask, "node"):
        raise OperandError(f"`{op}` takes a mask, got a tensor of numbers", "write `mask != 0.0`")
    if isinstance(mask, int | float) or getattr(mask, "ndim", 1) == 0:
        raise OperandError(
            f"`{op}` takes a mask, got the single value {mask}",
            "compare a tensor, `x == 1.0`, or give one bool for each element",
        )


def is_mask(value: Any) -> bool:
    """Whether it is an array of bools of some library."""
    return str(getattr(value, "dtype", "")).endswith("bool") and hasattr(value, "shape")


def _is_single_bool(value: Any) -> bool:
    return isinstance(value, bool) or (is_mask(value) and value.ndim == 0)


def _refuse_operand(op: str, value: Any) -> NoReturn:
    raise OperandError(
        f"`{op}` takes a tensor or a number, got {type(value).__name__}",
        "create a tensor with `device.tensor(...)`; identity is `is`",
    )
