"""One untimed pass whose events go to a sink."""

from __future__ import annotations

import warnings
from dataclasses import dataclass

from ckptcli.autodiff.device import device as open_device
from ckptcli.checkpoint.strategies.base import Strategy
from ckptcli.errors import UntrackedBackwardWarning
from ckptcli.events import Sink
from ckptcli.workloads.base import Workload


@dataclass(frozen=True, slots=True)
class LoggedPass:
    """What a logged pass computed: each parameter's gradient, flat, and the engine's warnings."""

    gradients: dict[str, list[float]]
    warnings: tuple[str, ...]


def log_pass(workload: Workload, strategy: Strategy, sink: Sink | None) -> LoggedPass:
    """Run the workload once with node ids from 0; `sink` gets every event.

    A parameter that no gradient reaches is left out.
    """
    device = open_device().autodiff().gradient_checkpointing(strategy).watched_by(sink)
    with device.backend.quiet(), warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UntrackedBackwardWarning)
        result = workload.load(device).forward()
        gradients = result.root.backward()
    found = {name: gradients.wrt(tensor) for name, tensor in result.parameters.items()}
    return LoggedPass(
        {
            name: gradient.numpy().ravel().tolist()
            for name, gradient in found.items()
            if gradient is not None
        },
        tuple(str(warning.message) for warning in caught),
    )
