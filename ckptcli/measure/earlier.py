"""Files from before every engine had its rows: their data as `ckpt.run/1` has it now.

Version 1 had the rows of other engines in a list `peers` of their own, and those of a PyTorch
module in a file of another schema, `ckpt.module/1`, which is read and no longer written.

Invariant: data of today's form is returned as it is.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ckptcli.measure import OURS

MODULE_SCHEMA = "ckpt.module/1"

_NO_TRACE = {"cost": None, "trace": None}


def in_rows(data: Mapping[str, Any]) -> dict[str, Any]:
    """A `ckpt.run/1` object whose peers are rows among its strategies.

    Raises:
        KeyError, TypeError: something else.
    """
    library = data.get("library") or f"NumPy {data['machine']['numpy']}"
    whole = {**data, "library": library}
    if any("engine" in entry for entry in data["strategies"]):
        return whole
    own = [{**entry, "engine": OURS, "library": library} for entry in data["strategies"]]
    return {**whole, "strategies": [*own, *map(_row, data.get("peers", ()))]}


def from_module(data: Mapping[str, Any]) -> dict[str, Any]:
    """A `ckpt.module/1` object as `ckpt.run/1`.

    Raises:
        KeyError, TypeError: something else.
    """
    before_bytes = data["parameters_bytes"] + data["input_bytes"]
    rows = [
        {
            **_row(entry),
            "params_input_bytes": None if entry["memory"] is None else before_bytes,
            "agreement": entry["agreement"] and {**entry["agreement"], "beside": "none"},
        }
        for entry in data["rows"]
    ]
    kept = ("version", "machine", "seed", "threshold", "stopped", "partial", "warnings", "children")
    library = data["rows"][0]["library"]
    return {
        **{key: data[key] for key in kept},
        "workload": {"name": "module", "title": data["title"]},
        "device": library,
        "library": library,
        "processes": 1,
        "config": {},
        "strategies": rows,
    }


def _row(entry: Mapping[str, Any]) -> dict[str, Any]:
    """An entry of `peers` as one of `strategies`."""
    memory, agreement = entry["memory"], entry["agreement"]
    return {
        **{key: entry[key] for key in ("engine", "strategy", "library", "threads", "reason")},
        **{key: entry[key] for key in ("agreement", "compile_s", "recomputed_by_op")},
        "regions": entry.get("regions", ()),
        "device": entry["library"],
        "reference": False,
        "passes": {kind: list(map(_sample, taken)) for kind, taken in entry["passes"].items()},
        **({} if memory is None else _memory(memory)),
        **({} if agreement is None else _outcome(agreement)),
        **_NO_TRACE,
    }


def _memory(memory: Mapping[str, Any]) -> dict[str, Any]:
    unknown = ("params_input_bytes", "after_forward_bytes", "ledger_peak_forward_bytes")
    rest = ("traced_peak_forward_bytes", "traced_peak_backward_bytes", "peak_live")
    return {
        **dict.fromkeys((*unknown, *rest, "after_backward_bytes")),
        "saved_bytes": memory["saved_bytes"],
        "saved_tensors": memory["saved_tensors"],
        "ledger_peak_backward_bytes": memory["peak_bytes"],
        "compiled_temp_bytes": memory["compiled_temp_bytes"],
    }


def _outcome(agreement: Mapping[str, Any]) -> dict[str, Any]:
    return {"loss": agreement["loss"], "grad_sum_w0": None, "grad_sha256": None}


def _sample(entry: Mapping[str, Any]) -> dict[str, Any]:
    whole_s = entry["total_s"] if entry["forward_s"] is None else None
    return {**entry, "whole_s": whole_s}
