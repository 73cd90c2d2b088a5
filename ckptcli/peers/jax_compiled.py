"""What is known of a program that XLA compiled: its plan, its operations, what it computes again.

`memory_analysis` has the plan: arguments, output, temporaries. Its `peak_memory_in_bytes` is not
used: on a processor it leaves the temporaries out.

Source: `jax.stages.Compiled`; `jax.experimental.serialize_executable`.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any

from ckptcli.measure.compiled import Compiled, Plan
from ckptcli.peers.base import NoPeer, Packed
from ckptcli.peers.jax_hlo import recomputed_by_op

CHILD = "ckptcli.peers.jax_child"

_DEFAULT_NAMED = {"xla_embed_ir_in_executable": False}
"""What XLA does anyway: without an option JAX hands out the program that it compiled before."""


def compiled_facts(lowered: Any, compiled: Any) -> Compiled:
    """What the program says of itself, before (`jax.stages.Lowered`) and after it is compiled.

    What a version of JAX does not tell is None.
    """
    return Compiled(
        plan=compiled_plan(compiled),
        lowered_flops=_flops(_told(lowered.cost_analysis)),
        flops=_flops(_told(compiled.cost_analysis)),
        asked_by_op=_told(lambda: recomputed_by_op(lowered.as_text("hlo", debug_info=True))),
        left_by_op=_told(lambda: recomputed_by_op(compiled.as_text())),
    )


def compiled_plan(compiled: Any) -> Plan | None:
    """What the compiler planned for a program; None where it does not tell."""
    return _plan(_told(compiled.memory_analysis))


def compiled_here(lowered: Any, compiled: Any) -> Any:
    """The compiled program, or an equal one where it may come from the user's compilation cache:
    JAX cannot pack again what it has read from there.
    """
    import jax
    from jax.experimental.compilation_cache.compilation_cache import reset_cache

    if not (jax.config.jax_compilation_cache_dir and jax.config.jax_enable_compilation_cache):
        return compiled
    # JAX asks once whether there is a cache, until it is reset.
    jax.config.update("jax_enable_compilation_cache", False)
    reset_cache()
    try:
        return lowered.compile(_DEFAULT_NAMED)
    finally:
        jax.config.update("jax_enable_compilation_cache", True)
        reset_cache()


def packed_program(compiled: Any, arguments: Any) -> Packed:
    """The program and its arguments as flat lists, so that no class of the user's goes along.

    Raises:
        NoPeer: JAX cannot write the program down.
    """
    import jax
    import numpy as np
    from jax.experimental.serialize_executable import serialize

    leaves = jax.tree_util.tree_leaves(arguments)
    try:
        program, _, outputs = serialize(compiled)
        told = {
            "program": program,
            "outputs": outputs.num_leaves,
            "arguments": [np.asarray(leaf) for leaf in leaves],
            "has_x64": jax.dtypes.canonicalize_dtype(np.float64) == np.float64,
            "platform": next(iter(leaves[0].devices())).platform,
        }
        return Packed(CHILD, pickle.dumps(told, protocol=5))
    except Exception as error:  # a callback into Python, say, lives in this process alone
        raise NoPeer(f"JAX cannot move the program to another process: {_first(error)}") from error


def _first(error: BaseException) -> str:
    lines = str(error).strip().splitlines()
    return lines[0] if lines else type(error).__name__


def _told(ask: Callable[[], Any]) -> Any:
    """What JAX says; None where this version or this device has no answer."""
    try:
        return ask()
    except (NotImplementedError, TypeError, AttributeError, RuntimeError, ValueError):
        return None


def _plan(known: Any) -> Plan | None:
    if known is None:
        return None
    return Plan(
        argument_bytes=int(known.argument_size_in_bytes),
        output_bytes=int(known.output_size_in_bytes),
        temp_bytes=int(known.temp_size_in_bytes),
        alias_bytes=int(known.alias_size_in_bytes),
    )


def _flops(known: Any) -> float | None:
    """Of a program, or of the one program in a list; XLA says -1 where it does not know."""
    costs = known[0] if isinstance(known, list | tuple) and known else known
    flops = costs.get("flops") if isinstance(costs, dict) else None
    return None if flops is None or flops < 0.0 else float(flops)
