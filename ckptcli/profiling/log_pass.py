"""One untimed pass whose events go to a sink."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ckptcli.autodiff.device import Device
from ckptcli.backends import open_backend
from ckptcli.backends.base import Backend
from ckptcli.checkpoint.strategies.base import Strategy
from ckptcli.events import Sink
from ckptcli.profiling.divergence import gradient_warnings, loss_warning
from ckptcli.profiling.engine_warnings import engine_warnings
from ckptcli.profiling.out_of_memory import told_as_failure
from ckptcli.workloads.base import Workload


@dataclass(frozen=True, slots=True)
class LoggedPass:
    """What a logged pass computed: each parameter's gradient, flat, and warnings about both.

    The warnings are the engine's, and those about values that are not finite.
    """

    gradients: dict[str, list[float]]
    warnings: tuple[str, ...]


def log_pass(
    workload: Workload, strategy: Strategy, sink: Sink | None, backend: Backend | None = None
) -> LoggedPass:
    """Run the workload once with node ids from 0, on NumPy by default; `sink` gets every event.

    A parameter that no gradient reaches is left out.

    Raises:
        PassOutOfMemory: the pass does not fit.
    """
    base = Device(backend or open_backend())
    device = base.autodiff().gradient_checkpointing(strategy).watched_by(sink)
    with (
        told_as_failure(base.backend, strategy.name, lambda: "the logged pass"),
        device.backend.quiet(),
        engine_warnings() as notes,
    ):
        result = workload.load(device).forward()
        loss = float(np.sum(result.root.numpy()))
        gradients = result.root.backward()
    found = {name: gradients.wrt(tensor) for name, tensor in result.parameters.items()}
    values = {
        name: gradient.numpy().ravel().tolist()
        for name, gradient in found.items()
        if gradient is not None
    }
    diverged = loss_warning(strategy.name, loss, workload.settings.get("dtype"))
    notes += [] if diverged is None else [diverged]
    return LoggedPass(values, (*notes, *gradient_warnings(strategy.name, values)))
