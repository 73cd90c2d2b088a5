"""One untimed pass whose events go to a sink."""

from __future__ import annotations

from dataclasses import dataclass

from ckptcli.autodiff.device import Device
from ckptcli.backends import open_backend
from ckptcli.backends.base import Backend
from ckptcli.checkpoint.strategies.base import Strategy
from ckptcli.events import Sink
from ckptcli.passes.run import run_pass
from ckptcli.profiling.divergence import gradient_warnings, loss_warning
from ckptcli.profiling.engine_warnings import engine_warnings
from ckptcli.profiling.out_of_memory import told_as_failure
from ckptcli.workloads.base import Workload


@dataclass(frozen=True, slots=True)
class LoggedPass:
    """What a logged pass computed: each parameter's gradient, flat, and warnings about both.

    The warnings are the engine's, and those about values that are not finite. `reasons` are the
    strategy's, why it decided as it did for this program.
    """

    gradients: dict[str, list[float]]
    warnings: tuple[str, ...]
    reasons: tuple[str, ...]


def heading(workload: Workload, strategy: Strategy, backend: Backend) -> str:
    """The line above the lines of one of several passes, as the seed's experiment prints it."""
    device = Device(backend).autodiff().gradient_checkpointing(strategy)
    return f"device = {device}, {workload.title}"


def log_pass(
    workload: Workload, strategy: Strategy, sink: Sink | None, backend: Backend | None = None
) -> LoggedPass:
    """Run the workload once with node ids from 0, on NumPy by default; `sink` gets every event.

    A parameter that no gradient reaches is left out.

    Raises:
        PassOutOfMemory: the pass does not fit.
    """
    backend = backend or open_backend()
    with (
        told_as_failure(backend, strategy.name, lambda: "the logged pass"),
        backend.quiet(),
        engine_warnings() as notes,
    ):
        done = run_pass(workload, strategy, backend, sink)
    values = {name: array.ravel().tolist() for name, array in done.gradient_arrays().items()}
    diverged = loss_warning(strategy.name, done.loss, workload.settings.get("dtype"))
    notes += [] if diverged is None else [diverged]
    warnings = (*notes, *gradient_warnings(strategy.name, values))
    return LoggedPass(values, warnings, tuple(done.strategy.reasons()))
