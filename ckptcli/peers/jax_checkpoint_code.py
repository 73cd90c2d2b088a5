"""Code to paste that puts a checkpoint into a JAX function of the user's own.

Around the whole it is a line where `MAKE` has its loss; around each call of a function a decorator
above its `def`, with which the file is run anew to see what it takes. JAX's own checkpoint takes
arrays alone, so that a function of other things has it inside a wrapper.

Invariant: a way comes with the function that its code makes of the user's.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from ckptcli.checkpoint.user_code import MARK, load_name
from ckptcli.peers.jax_function import UserFunction, made_function
from ckptcli.planning.functions.search import Candidate
from ckptcli.planning.snippet import Snippet

_JAX = "import jax\n"
_BOTH = "import functools\n\nimport jax\n"
_WRAPPER = '''def checkpointed(function):
    """A checkpoint around each call, whatever it is given, arrays or not."""

    @functools.wraps(function)
    def call(*given, **named):
        return jax.checkpoint(lambda: function(*given, **named){policy})()

    return call
'''


@dataclass(frozen=True, slots=True)
class Way:
    """Code, and the function with it in; `load` runs the user's code."""

    snippet: Snippet
    load: Callable[[], UserFunction]


def ways(user: UserFunction, candidate: Candidate) -> Iterator[Way]:
    """How the checkpoint of a candidate could be written, plain ones first."""
    if not candidate.place:
        yield from _around_the_loss(user, candidate.saved)
        return
    file, _, function = candidate.place.rpartition(":")
    if not _is_the_users_file(file, user.text):
        return
    source = Path(file).read_text()
    defined = [node for name, node in _functions(ast.parse(source)) if _is(name, function)]
    if len(defined) == 1:
        yield from _above_a_function(user, source, defined[0], candidate)


def _around_the_loss(user: UserFunction, saved: str) -> Iterator[Way]:
    place = "in MAKE, where it has its loss"
    policy = _policy(saved)
    wrapper = f"{_BOTH}\n\n{_WRAPPER.format(policy=policy)}\n\nloss = checkpointed(loss)\n"
    for code in (f"{_JAX}\nloss = jax.checkpoint(loss{policy})\n", wrapper):
        yield Way(Snippet(place, code), partial(_with_loss, user, code))


def _with_loss(user: UserFunction, code: str) -> UserFunction:
    names: dict[str, Any] = {"loss": user.loss}
    exec(code, names)  # what is given out to be pasted
    return replace(user, loss=names["loss"])


def _above_a_function(
    user: UserFunction, source: str, node: ast.FunctionDef, candidate: Candidate
) -> Iterator[Way]:
    lines = source.splitlines()
    above = node.lineno - 1
    file = candidate.place.rpartition(":")[0]
    for before, decorator in _decorators(candidate.saved, "flax" in source):
        changed = [*lines[:above], f"{' ' * node.col_offset}{decorator}", *lines[above:]]
        code = f"{before}\n\n{decorator}\n{_header(lines, node)}\n"
        yield Way(
            Snippet(f"above `def {node.name}` at {file}:{node.lineno}", code),
            partial(_with_source, user.text, "\n".join(changed) + "\n", before),
        )


def _with_source(text: str, source: str, before: str) -> UserFunction:
    names: dict[str, Any] = {}
    exec(before, names)  # imports, and the wrapper where it takes one
    return made_function(text, load_name(text, source, names))


def _decorators(saved: str, is_flax: bool) -> Iterator[tuple[str, str]]:
    """What stands before, and the decorator."""
    imports = _BOTH if saved else _JAX
    yield imports, _decorator("jax.checkpoint", saved)
    if is_flax:
        lifted = imports.replace(_JAX, f"import flax\n{_JAX}")
        yield lifted, _decorator("flax.linen.remat", saved)
    yield f"{_BOTH}\n\n{_WRAPPER.format(policy=_policy(saved))}", "@checkpointed"


def _decorator(checkpoint: str, saved: str) -> str:
    return f"@functools.partial({checkpoint}{_policy(saved)})" if saved else f"@{checkpoint}"


def _policy(saved: str) -> str:
    return f", policy={saved}" if saved else ""


def _header(lines: Sequence[str], node: ast.FunctionDef) -> str:
    """`def layer(params, h):` as it is written, from where it stands; the whole of one line."""
    found = []
    for line in lines[node.lineno - 1 : max(node.lineno, node.body[0].lineno - 1)]:
        found.append(line[node.col_offset :])
        if line.split("#")[0].rstrip().endswith(":"):
            break
    return "\n".join(found)


def _functions(tree: ast.Module) -> Iterator[tuple[str, ast.FunctionDef]]:
    """Every function with the names of what it is in, `Class.method`."""
    waiting: list[tuple[str, ast.AST]] = [("", tree)]
    while waiting:
        within, current = waiting.pop()
        for node in ast.iter_child_nodes(current):
            path = within
            if isinstance(node, ast.FunctionDef | ast.ClassDef | ast.AsyncFunctionDef):
                path = f"{within}.{node.name}" if within else node.name
            if isinstance(node, ast.FunctionDef):
                yield path, node
            waiting.append((path, node))


def _is(name: str, function: str) -> bool:
    return name == function or name.endswith(f".{function}")


def _is_the_users_file(file: str, text: str) -> bool:
    stem = text.partition(MARK)[0]
    return Path(file).resolve() == Path(f"{stem}.py").resolve()
