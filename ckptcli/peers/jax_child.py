"""The process that loads one compiled program of JAX and runs it once, to see what that takes.

Nothing is traced or compiled here, so that all that rises is the program's own.
"""

from __future__ import annotations

import json
import pickle
import sys
from typing import Any

from ckptcli.measure.resident import resident_rise_bytes


class _Once:
    """The program, a subject of `resident_rise_bytes`: `forward` runs it whole."""

    def __init__(self, told: dict[str, Any]) -> None:
        import jax
        from jax.experimental.serialize_executable import deserialize_and_load

        device = jax.devices(told["platform"])[0]
        self._arguments = [jax.device_put(array, device) for array in told.pop("arguments")]
        inputs = jax.tree_util.tree_structure((tuple(self._arguments), {}))
        outputs = jax.tree_util.tree_structure([0] * told["outputs"])
        self._call = deserialize_and_load(
            told.pop("program"), inputs, outputs, backend=told["platform"]
        )

    def forward(self) -> Any:
        import jax

        return jax.block_until_ready(self._call(*self._arguments))

    def backward(self, state: Any) -> Any:
        return state

    def check(self, result: Any) -> float | None:
        return None


def main() -> None:
    """Read what `packed_program` wrote; print the figures as one JSON object."""
    import jax

    told = pickle.load(sys.stdin.buffer)
    jax.config.update("jax_enable_x64", told["has_x64"])
    _load_library_calls()
    rise_bytes = resident_rise_bytes(_Once(told))
    stats = jax.devices(told["platform"])[0].memory_stats() or {}
    print(
        json.dumps(
            {
                "fresh_process_bytes": rise_bytes,
                "device_peak_bytes": stats.get("peak_bytes_in_use"),
            }
        )
    )


def _load_library_calls() -> None:
    """JAX looks up LAPACK's functions when it lowers the first call of one: a program that calls
    them without would end the process.
    """
    import jax

    jax.jit(jax.numpy.linalg.svd).lower(jax.numpy.ones((2, 2)))
