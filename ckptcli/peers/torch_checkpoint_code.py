"""Code to paste behind `model = ...` that puts checkpoints around some blocks of a module.

Invariant: what the code makes of a module takes the bytes of the same set under `-s remat:only=`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from keyword import iskeyword

from ckptcli.peers.torch_regions import ModuleRegion
from ckptcli.planning.snippet import Snippet

_LOOP = "a loop over the blocks"
_SEQUENTIAL = "the Sequential in pieces"
_WRAPPER = "apply_activation_checkpointing"
_SWITCH = "the module's own switch"
_PARTIAL = "from functools import partial\n\n"
_CHECKPOINT = "from torch.utils.checkpoint import checkpoint\n"
_TURNED = "    block.forward = partial(checkpoint, block.forward, use_reentrant=False)\n"


def snippets(regions: Sequence[ModuleRegion]) -> list[Snippet]:
    """The ways in which these regions can be made by hand; none for no region."""
    if not regions:
        return []
    single = [region.paths[0] for region in regions if not region.is_in_caller]
    several = [region for region in regions if region.is_in_caller]
    loops = "".join(_loops(single))
    if several:
        imports = f"{_PARTIAL if loops else ''}from torch import nn\n{_CHECKPOINT}"
        return [Snippet(_SEQUENTIAL, f"{imports}\n{loops}{''.join(_pieces(several))}")]
    found = [Snippet(_LOOP, f"{_PARTIAL}{_CHECKPOINT}\n{loops}")]
    if all(single):  # a module that is one block itself is never wrapped
        found.append(Snippet(_WRAPPER, _wrapped(single)))
    return found


def switch_snippet(path: str, call: str) -> Snippet:
    """A call of a part of the model that turns checkpoints on."""
    return Snippet(_SWITCH, f"{_expression(path)}.{call}\n")


def _loops(paths: Sequence[str]) -> Iterator[str]:
    """A loop for the blocks of each list, another one over all that are in none."""
    for parent, group in groupby(paths, key=_list_of):
        names = list(group)
        if parent is None:
            yield f"for path in {_tuple(map(repr, names))}:\n    block = {_lookup('path')}\n"
        else:
            indices = _tuple(path.rpartition(".")[2] for path in names)
            yield f"for index in {indices}:\n    block = {_expression(parent)}[index]\n"
        yield _TURNED


def _tuple(words: Iterable[str]) -> str:
    found = list(words)
    return f"({found[0]},)" if len(found) == 1 else f"({', '.join(found)})"


def _list_of(path: str) -> str | None:
    """The list that a block is an element of, by its path; None for one that is in none."""
    parent, _, name = path.rpartition(".")
    return parent if name.isdecimal() else None


def _lookup(name: str) -> str:
    return f"model.get_submodule({name})"


def _expression(path: str) -> str:
    """`model.encoder.layers[0]`."""
    found = "model"
    for name in path.split(".") if path else ():
        if name.isdecimal():
            found += f"[{name}]"
        elif name.isidentifier() and not iskeyword(name):
            found += f".{name}"
        else:
            return _lookup(repr(path))
    return found


def _pieces(regions: Sequence[ModuleRegion]) -> Iterator[str]:
    """The forward of each Sequential: regions under a checkpoint, the rest as it is."""
    for _, group in groupby(regions, key=lambda region: id(region.run.caller)):
        members = list(group)
        run, done = members[0].run, 0
        yield f"layers = list({_expression(run.caller_path)})\n\n\n"
        yield "def in_pieces(x, layers=layers):\n"
        for region in members:
            first = next(i for i in range(done, len(run.parts)) if run.parts[i] is region.parts[0])
            if first > done:
                yield f"    x = nn.Sequential(*layers[{done}:{first}])(x)\n"
            done = first + len(region.parts)
            piece = f"nn.Sequential(*layers[{first}:{done}])"
            yield f"    x = checkpoint({piece}, x, use_reentrant=False)\n"
        if done < len(run.parts):
            yield f"    x = nn.Sequential(*layers[{done}:])(x)\n"
        yield f"    return x\n\n\n{_expression(run.caller_path)}.forward = in_pieces\n"


def _wrapped(paths: Sequence[str]) -> str:
    named = "".join(f"    {path!r},\n" for path in paths)
    return (
        f"{_PARTIAL}"
        "from torch.distributed.algorithms._checkpoint.checkpoint_wrapper import (\n"
        "    CheckpointImpl,\n    apply_activation_checkpointing,\n    checkpoint_wrapper,\n)\n\n"
        f"paths = [\n{named}]\n"
        f"chosen = {{{_lookup('path')} for path in paths}}\n"
        "wrapper = partial(checkpoint_wrapper, checkpoint_impl=CheckpointImpl.NO_REENTRANT)\n"
        "apply_activation_checkpointing(\n"
        "    model, checkpoint_wrapper_fn=wrapper, check_fn=lambda module: module in chosen\n)\n"
    )
