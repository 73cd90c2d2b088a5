"""The blocks of a PyTorch module: what strategies put checkpoints around.

Blocks are elements with children of their own of a ModuleList or Sequential, wherever it lies, the
outermost first. A list of such lists is a list of stages: their elements are the blocks. Without
such a list the direct children with parameters are the blocks, wrappers around one module passed
through; a Sequential of leaves among them is a run of its elements.

A Sequential with one element that has children, among leaves, is no such list: a block that begins
with a pooling layer is not a list of one block.

Invariant: each block is called, and none lies inside another.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from itertools import groupby

import torch

from ckptcli.errors import UsageError

Part = tuple[str, torch.nn.Module]
"""Path and module."""

_LISTS = (torch.nn.Sequential, torch.nn.ModuleList)


@dataclass(frozen=True, slots=True)
class Run:
    """Parts of one list, or a block alone.

    Attributes:
        parts: in order; one that a Sequential has twice is there twice.
        counted: which of them are blocks, by their places in `parts`.
        caller: the Sequential that calls all parts one after the other; None without one.
        is_loop: whether the module's own forward calls the blocks one after the other, each with
            what the one before gave.
    """

    parts: Sequence[Part]
    counted: Sequence[int]
    caller: torch.nn.Module | None = None
    is_loop: bool = False

    @property
    def caller_path(self) -> str:
        """Of the list that the parts are in."""
        return self.parts[0][0].rpartition(".")[0]

    @property
    def blocks(self) -> list[Part]:
        return [self.parts[place] for place in self.counted]

    def without_caller(self) -> Run:
        """The same where the Sequential is not called as a whole: each module once."""
        once = {id(m): (path, m) for path, m in reversed(self.blocks) if _has_parameters(m)}
        parts = list(once.values())[::-1]
        return Run(parts, range(len(parts)))


@dataclass(frozen=True, slots=True)
class Blocks:
    """All blocks of a module, in the order of its children."""

    runs: Sequence[Run]

    @property
    def parts(self) -> list[Part]:
        return [part for run in self.runs for part in run.blocks]

    @property
    def paths(self) -> list[str]:
        return [path for path, _ in self.parts]

    @property
    def can_group(self) -> bool:
        """Whether two of them fit under one checkpoint somewhere."""
        return any(len(run.counted) > 1 and (run.caller or run.is_loop) for run in self.runs)


def blocks_of(module: torch.nn.Module, wanted: str | None = None) -> Blocks:
    """The blocks, or those that `wanted` names: a glob over paths, or a class.

    Raises:
        UsageError: no part of the module is called so.
    """
    if isinstance(module, torch.jit.ScriptModule):
        return Blocks([])
    if wanted is not None:
        return Blocks(_wanted(module, wanted))
    return Blocks(list(_of_lists("", module)) or _direct(module))


def _of_lists(path: str, module: torch.nn.Module) -> Iterator[Run]:
    """The runs of the lists of blocks in `module`, which may be one itself."""
    parts = _children(path, module)
    if not _is_list_of_blocks(module):
        for part in parts:
            yield from _of_lists(*part)
        return
    blocks = [place for place, (_, part) in enumerate(parts) if _is_block(part)]
    stages = [place for place, (_, part) in enumerate(parts) if _is_list_of_blocks(part)]
    if not stages:
        yield Run(parts, blocks, _caller(module))
        return
    for place, part in enumerate(parts):
        if place in stages:
            yield from _of_lists(*part)
        elif place in blocks:
            yield Run([part], [0])


def _is_block(module: torch.nn.Module) -> bool:
    """Whether it has children of its own and something to compute with."""
    return any(True for _ in module.children()) and _has_parameters(module)


def _is_list_of_blocks(module: torch.nn.Module) -> bool:
    if not isinstance(module, _LISTS):
        return False
    blocks = sum(_is_block(part) for part in module)
    alone = blocks == 1 and len(module) > 1 and isinstance(module, torch.nn.Sequential)
    return blocks > 0 and not alone


def _direct(module: torch.nn.Module) -> list[Run]:
    """The children of a module without lists of blocks."""
    path = ""
    while (only := _only_child(path, module)) is not None:
        path, module = only
    parts = _children(path, module)
    caller = _caller(module)
    if caller is not None:
        return [Run(parts, range(len(parts)), caller)] if parts else []
    return list(_called(parts))


def _only_child(path: str, module: torch.nn.Module) -> Part | None:
    """What a wrapper wraps: a child that is alone and has children."""
    parts = _children(path, module)
    if len(parts) != 1 or next(module.parameters(recurse=False), None) is not None:
        return None
    is_compiled = isinstance(parts[0][1], torch.jit.ScriptModule)
    return parts[0] if any(True for _ in parts[0][1].children()) and not is_compiled else None


def _called(parts: Sequence[Part]) -> Iterator[Run]:
    """Each module that can be called and has parameters, once; elements instead of what has no
    forward; a Sequential of leaves as a run.
    """
    seen: set[int] = set()
    waiting = list(parts)[::-1]
    while waiting:
        path, part = waiting.pop()
        elements = _children(path, part)
        if isinstance(part, torch.nn.ModuleList) and not any(_is_block(m) for _, m in elements):
            places = [place for place, (_, m) in enumerate(elements) if _has_parameters(m)]
            yield from [Run(elements, places)] if places else []
        elif has_forward_of(torch.nn.Module, part):
            waiting += elements[::-1]
        elif _has_parameters(part) and id(part) not in seen:
            seen.add(id(part))
            if _caller(part) is not None and not any(_is_block(m) for _, m in elements):
                yield Run(elements, range(len(elements)), part)
            else:
                yield Run([(path, part)], [0])


def _wanted(module: torch.nn.Module, wanted: str) -> list[Run]:
    """The parts that are named, the outermost of each, neighbours of one list together."""
    named = [part for part in module.named_modules() if part[0]]
    kinds = {type(part).__name__ for _, part in named}
    chosen: list[Part] = []
    for path, part in named:
        is_named = type(part).__name__ == wanted if wanted in kinds else _matches(path, wanted)
        if is_named and not any(path.startswith(f"{outer}.") for outer, _ in chosen):
            chosen.append((path, part))
    if not chosen:
        raise UsageError(
            f"--blocks {wanted}: no part of the module has such a path or class",
            f"name a path, as `{named[0][0]}`, a glob over paths, or a class: "
            f"{', '.join(sorted(kinds))}"
            if named
            else "the module has no parts",
        )
    runs = []
    for parent, group in groupby(chosen, key=lambda part: part[0].rpartition(".")[0]):
        owner = module.get_submodule(parent)
        parts = _children(parent, owner)
        names = {path for path, _ in group}
        places = [place for place, (path, _) in enumerate(parts) if path in names]
        if isinstance(owner, _LISTS):
            runs.append(Run(parts, places, _caller(owner)))
        else:
            runs += [Run([parts[place]], [0]) for place in places]
    return runs


def _matches(path: str, wanted: str) -> bool:
    """A `*` stands for one name, as in a shell for one folder."""
    names, patterns = path.split("."), wanted.split(".")
    return len(names) == len(patterns) and all(map(fnmatchcase, names, patterns))


def _children(path: str, module: torch.nn.Module) -> list[Part]:
    prefix = f"{path}." if path else ""
    return [(f"{prefix}{name}", m) for name, m in module._modules.items() if m is not None]


def _caller(module: torch.nn.Module) -> torch.nn.Module | None:
    """The module where it is a Sequential that calls its elements as all of these do."""
    return module if has_forward_of(torch.nn.Sequential, module) else None


def has_forward_of(kind: type[torch.nn.Module], module: torch.nn.Module) -> bool:
    """Neither its class nor the module itself, as one that is compiled, has another."""
    return getattr(module.forward, "__func__", None) is kind.forward


def _has_parameters(module: torch.nn.Module) -> bool:
    return next(module.parameters(), None) is not None


def _is_out_of_reach(part: Part) -> bool:
    """A ScriptModule takes no hooks: whether it is called is not known."""
    return isinstance(part[1], torch.jit.ScriptModule)


def as_called(blocks: Blocks, called: set[int], loops: set[int]) -> Blocks:
    """The blocks as a pass called them: by `id`, the modules that were called at all, and the first
    blocks of runs that were called in a plain loop.
    """
    runs = []
    for run in blocks.runs:
        if run.caller is not None and id(run.caller) in called:
            runs.append(run)
            continue
        single = run.without_caller()
        parts = [part for part in single.parts if _is_out_of_reach(part) or id(part[1]) in called]
        is_loop = bool(parts) and id(parts[0][1]) in loops
        runs.append(Run(parts, range(len(parts)), is_loop=is_loop))
    return Blocks([run for run in runs if run.parts])


def in_another(blocks: Blocks, module: torch.nn.Module) -> Blocks:
    """The same blocks of a module that was made as the first one was."""

    def found(path: str) -> torch.nn.Module:
        return module.get_submodule(path)

    return Blocks(
        [
            replace(
                run,
                parts=[(path, found(path)) for path, _ in run.parts],
                caller=None if run.caller is None else found(run.caller_path),
            )
            for run in blocks.runs
        ]
    )
