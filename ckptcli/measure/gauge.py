"""How a decomposition that was computed again differs: in sizes, or in signs alone."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class GaugeChange:
    """How a packed decomposition (U, s, V) differs from the original, in the columns that count.

    Attributes:
        op, node, layer: Whose value it is, and in which layer of the network it was made.
        columns: How many columns the program uses; no others are looked at.
        flipped: The columns that point the other way, in U and V both.
        turned: The columns that point elsewhere: rotated within nearly equal singular values.
        size_error: Of the singular values, relative to the largest.
        vector_error: The largest change of an element of U or V, signs aside, `turned` left out.
        layer_name: What the program calls the layer.
    """

    op: str
    node: int
    layer: int | None
    columns: int
    flipped: tuple[int, ...]
    turned: tuple[int, ...]
    size_error: float
    vector_error: float
    layer_name: str = ""

    def __str__(self) -> str:
        parts = []
        if self.flipped:
            parts.append(f"the signs of {_columns(self.flipped)}")
        if self.turned:
            parts.append(f"the directions of {_columns(self.turned)}")
        sizes = f"singular values within {self.size_error:.1e}, vectors within"
        if not parts:
            return f"sizes alone: {sizes} {self.vector_error:.1e}"
        return (
            f"{' and '.join(parts)}: a gauge, not an error of size ({sizes} "
            f"{self.vector_error:.1e} but for that)"
        )


def _columns(numbers: tuple[int, ...]) -> str:
    """`column 5`, or `columns 5, 6`."""
    return f"column{'s' * (len(numbers) > 1)} {', '.join(map(str, numbers))}"
