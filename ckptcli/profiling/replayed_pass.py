"""One pass of a flat program under the ledger, held against the tape's."""

from __future__ import annotations

from ckptcli import units
from ckptcli.backends.base import Backend
from ckptcli.backends.ledger import Ledger, TrackedBackend
from ckptcli.checkpoint.strategies.base import Strategy
from ckptcli.errors import ReplayError
from ckptcli.measure.rounds import collector_off
from ckptcli.passes.run import run_pass
from ckptcli.replay.flat_program import flat_program
from ckptcli.workloads.base import Workload


def replayed_peak_bytes(workload: Workload, strategy: Strategy, backend: Backend) -> int:
    """The ledger's peak of the flat program above parameters and input.

    Raises:
        ReplayError: the program cannot be replayed, or replays with other gradients.
    """
    with collector_off(), backend.quiet():
        program = flat_program(workload, strategy, backend)
        ledger = Ledger()
        for array in program.recording.externals.values():
            ledger.observe(array, backend.namespace)
        base_bytes = ledger.bytes_in_use
        ledger.start_phase()
        counted = program.on(TrackedBackend(backend, ledger))
        result = counted.forward()
        gradients = counted.backward(result)
        expected = run_pass(workload, strategy, backend).gradient_arrays()
    for name, tensor in result.parameters.items():
        found = gradients.wrt(tensor)
        reached = name in expected
        if (found is not None) != reached or (
            found is not None and found.numpy().tobytes() != expected[name].tobytes()
        ):
            raise ReplayError(
                f"{strategy.name}: the flat program has another gradient of `{name}` than the tape",
                "this is a defect of the replay, please report it with the program that shows it",
            )
    return ledger.peak.live_bytes - base_bytes


def replay_note(strategy: str, replayed_bytes: int, tape_bytes: int) -> str:
    """What to say of the peak beside that of the tape."""
    beside = (
        "as on the tape"
        if replayed_bytes == tape_bytes
        else f"{units.size(tape_bytes)} on the tape, which the table has"
    )
    return (
        f"{strategy}: times are of the flat program, whose values peak at "
        f"{units.size(replayed_bytes)} above parameters and input, {beside}"
    )
