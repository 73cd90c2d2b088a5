"""The names that a policy of JAX's goes by, and those of them that nothing has.

JAX asks a policy at each value of a region, so that a name which is mistyped, or which only a value
outside of the region has, saves nothing and is never missed.

Source: the policies of `jax.checkpoint_policies` keep their names as attributes or in a closure.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ckptcli.peers.jax_evaluate import equations, is_checkpoint
from ckptcli.peers.jax_saved import names_in


def names_of_policy(policy: Any) -> frozenset[str]:
    """The names that one of JAX's own policies was given, those of policies inside it too; a
    policy that is not JAX's has none that could be told from other words.
    """
    if not str(getattr(policy, "__module__", "")).startswith("jax."):
        return frozenset()
    cells = getattr(policy, "__closure__", None) or ()
    parts = [*getattr(policy, "__dict__", {}).values(), *(cell.cell_contents for cell in cells)]
    return frozenset(name for part in parts for name in _names_in_part(part))


def _names_in_part(part: Any) -> Iterator[str]:
    if isinstance(part, set | frozenset | tuple | list):
        yield from (item for item in part if isinstance(item, str))
    elif callable(part):
        yield from names_of_policy(part)


def unmet_names(program: Any, gradient: Any, text: str) -> Iterator[str]:
    """A sentence on each name that the policies of a `Jaxpr`'s own checkpoints go by and that no
    value inside of these has. What the gradient's `Jaxpr` alone has is the name of a value inside
    of a derivative rule; `text` is what the program is called.
    """
    regions = [equation for equation in equations(program) if is_checkpoint(equation)]
    everywhere = names_in(program)
    inside = set(names_in(gradient) - everywhere)
    asked: set[str] = set()
    for region in regions:
        asked |= names_of_policy(region.params["policy"])
        inside |= names_in(region.params["jaxpr"])
    for name in sorted(asked - inside):
        elsewhere = ", only one outside" if name in everywhere else ""
        known = f" (known there are {', '.join(sorted(inside))})" if inside else ""
        yield (
            f"`{text}`: the policy of a checkpoint goes by the name `{name}`, which no value "
            f"inside has{elsewhere}{known}: give it inside, with jax.ad_checkpoint.checkpoint_name"
        )
