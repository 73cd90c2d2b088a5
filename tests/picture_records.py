"""Hand-made records of other shapes: rows of other engines, of a module, of one gradient."""

from __future__ import annotations

from dataclasses import replace

from ckptcli.measure.memory import Memory, held_alone
from ckptcli.measure.points import Part, common_workload, joined
from ckptcli.measure.record import RunRecord
from ckptcli.measure.row import Agreement, Outcome
from tests.records import (
    BASE,
    STEADY,
    TENSOR,
    balanced_record,
    engine_row,
    none_record,
    run_record,
)

AGREES = Agreement(
    loss=211.5,
    loss_relative=1e-7,
    loss_ulp=1.0,
    gradient_relative=3e-7,
    gradient_ulp=4.0,
    tolerance=1e-5,
)
OUTCOME = Outcome(211.5, 1234.5, None, {"sigmoid": 2})
NOISY = tuple(time_s * (1.0 + 0.1 * (i % 3)) for i, time_s in enumerate(STEADY))
HALVES = tuple((0.4 * time_s, 0.6 * time_s, time_s) for time_s in STEADY)
WHOLES = tuple((None, None, 1.5 * time_s) for time_s in STEADY)


def plain_memory(saved: int, peak: int) -> Memory:
    """An account without kernels' workspace or what was live, in tensors."""
    return replace(
        none_record().memory,
        saved_bytes=saved * TENSOR,
        saved_tensors=saved,
        after_forward_bytes=BASE + saved * TENSOR,
        ledger_peak_forward_bytes=BASE + peak * TENSOR,
        ledger_peak_backward_bytes=BASE + peak * TENSOR,
        traced_peak_forward_bytes=None,
        traced_peak_backward_bytes=None,
        peak_live=None,
    )


def engines() -> RunRecord:
    """Two rows of PyTorch, one with only a reason; one of JAX, which tells no peak."""
    torch = engine_row("torch", "none", None, HALVES, library="PyTorch 2.13.0", threads=2)
    jax = engine_row("jax", "none", None, WHOLES, library="JAX 0.10.2", compile_s=0.5)
    held = held_alone(7 * TENSOR, 7, 4 * TENSOR)
    return run_record(
        none_record(),
        balanced_record(),
        replace(torch, memory=plain_memory(5, 6), outcome=OUTCOME, agreement=AGREES),
        engine_row("torch", "balanced", "it decides op by op", library="PyTorch 2.13.0"),
        replace(jax, memory=held, outcome=OUTCOME, agreement=AGREES),
    )


def module() -> RunRecord:
    """A PyTorch module of the user's own in a folder: no row is ckpt's."""
    beside = replace(AGREES, loss_relative=0.0, gradient_relative=0.0, beside="none")
    none = engine_row("torch", "none", None, HALVES, library="PyTorch 2.13.0", threads=2)
    remat = replace(none, strategy="remat:every=2", regions=(("0", "1"), ("2", "3")))
    return run_record(
        replace(none, memory=plain_memory(5, 6), outcome=OUTCOME, agreement=beside),
        replace(remat, memory=plain_memory(2, 4), outcome=OUTCOME, agreement=beside),
        workload={
            "name": "module",
            "title": "/home/somebody/nets/mlp.py:make, Sequential with 1,234 parameters",
            "module": "/home/somebody/nets/mlp.py:make",
            "has_caller": True,
        },
        device="Torch(Cpu)",
        children=("0", "1", "2", "3"),
    )


def gradient() -> RunRecord:
    """A program with one number to differentiate by."""
    own = replace(
        none_record().outcome, gradient=0.844, exact=(0.799, 0.8441), finite_difference=0.84405
    )
    return run_record(
        none_record(outcome=own),
        balanced_record(outcome=replace(own, recomputed_by_op={"mul": 1})),
        workload={"name": "trg", "title": "steps = 4, chi = 16", "loss_name": "lnZ/N"},
    )


def points(*lists: RunRecord) -> RunRecord:
    """The run of a list, `-n 64,1024`: of two programs, or of these."""
    small = run_record(none_record(), balanced_record(), workload=_silu(64))
    parts = [
        Part({"n": of.workload["n"]}, of)
        for of in lists or (small, run_record(none_record(), balanced_record(NOISY)))
    ]
    config = {"n": ",".join(str(part.point["n"]) for part in parts), "layers": 2, "batch": None}
    whole = common_workload([part.record.workload for part in parts], {"n": config["n"]})
    return replace(joined(parts, whole), config=config)


def _silu(n: int) -> dict[str, object]:
    return {**run_record().workload, "title": f"n = {n}, layers = 2", "n": n, "batch": n}
