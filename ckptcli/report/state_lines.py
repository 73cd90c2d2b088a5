"""What moves where a module's checkpoints compute again, a line for what moves alike."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ckptcli.measure.module_check import Moved, block_name
from ckptcli.units import count, some

SHOWN = 5


def state_lines(state: Sequence[Moved]) -> Iterator[str]:
    """Of each group of state what moves it, and what that does."""
    groups: dict[tuple[object, ...], list[Moved]] = {}
    for moved in state:
        key = (moved.kind, moved.is_moved, moved.is_moved_again, moved.is_apart, moved.values)
        groups.setdefault(key, []).append(moved)
    yield from filter(None, map(_alike, groups.values()))


def _alike(group: Sequence[Moved]) -> str:
    first = group[0]
    names = [moved.name for moved in group]
    is_are = "are" if len(names) > 1 else "is"
    blocks = list(dict.fromkeys(block for moved in group for block in moved.blocks))
    inside = block_name(blocks[0])
    inside += f" and {count(len(blocks) - 1, 'more block')}" if len(blocks) > 1 else ""
    parts = [f"moved by the forward of {inside}"] if first.is_moved else []
    if first.is_moved_again:
        parts.append(
            "once more when it is computed again" if parts else "moved when computed again"
        )
    if first.is_apart:
        parts.append(_apart(first, "that" if parts else inside))
    if first.kind == "random state" and not first.is_apart and not first.is_moved_again:
        parts.append("set back when it is computed again, which draws the same")
    return f"{_named(first.kind, names)} {is_are} {', '.join(parts)}" if parts else ""


def _named(kind: str, names: Sequence[str]) -> str:
    if kind == "random state":
        return f"the {kind} {' and '.join(names)}"
    return f"{kind}{'s' if len(names) > 1 else ''} {some([f'`{name}`' for name in names], SHOWN)}"


def _apart(moved: Moved, what: str) -> str:
    begins = f"when the recomputation of {what} begins" if what != "that" else "when that begins"
    if moved.values is None:
        return f"other than in the forward {begins}"
    return f"{moved.values[1]} and no longer {moved.values[0]} {begins}"
