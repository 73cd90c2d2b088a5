"""A user's own program as a workload: `FILE.py:MAKE`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ckptcli.autodiff.device import Device
from ckptcli.checkpoint.user_code import MARK, load_name
from ckptcli.errors import UsageError
from ckptcli.options.workload import WorkloadOptions
from ckptcli.workloads.base import Workload
from ckptcli.workloads.program_network import (
    SHRINK_HINT,
    Program,
    ProgramNetwork,
    check_callable,
)
from ckptcli.workloads.program_trial import Trial, try_out
from ckptcli.workloads.registry import PROGRAM, workload


@dataclass(frozen=True, slots=True)
class ProgramWorkload(Workload):
    """A program that has run once."""

    program: Program
    trial: Trial
    consumes: bool = False
    replays: bool = False

    @property
    def title(self) -> str:
        return f"program = {self.program.text}"

    @property
    def settings(self) -> dict[str, object]:
        stem, _, function = self.program.text.partition(MARK)
        dtype = {} if self.program.dtype is None else {"dtype": self.program.dtype}
        return {"name": PROGRAM, "file": f"{stem}.py", "function": function, **dtype}

    @property
    def layer_count(self) -> int:
        return self.trial.layer_count

    @property
    def notes(self) -> Sequence[str]:
        """What to tell the user of the program, whatever is done with it."""
        return tuple(f"`{self.program.text}`: {note}" for note in self.trial.notes)

    @property
    def shrink_hint(self) -> str:
        return SHRINK_HINT

    def load(self, device: Device) -> ProgramNetwork:
        return self.program.load(device)

    def parameters(self) -> dict[str, Any]:
        return dict(self.trial.parameters)

    def with_parameters(self, arrays: Mapping[str, Any]) -> ProgramWorkload:
        numbers = {name: number for number, name in enumerate(self.trial.parameters)}
        values = {numbers[name]: array for name, array in arrays.items()}
        other = replace(self.program, values={**self.program.values, **values})
        parameters = {**self.trial.parameters, **arrays}
        return ProgramWorkload(other, replace(self.trial, parameters=parameters))

    def needed_bytes(self, strategies: Sequence[str]) -> int:
        """What the forward pass needs that holds nothing for a backward pass."""
        return self.trial.peak_bytes


@workload(PROGRAM, "dtype", "seed")
def open_program(argument: str, options: WorkloadOptions) -> list[Workload]:
    """`FILE.py:MAKE`: the program, after it has run once.

    A dtype other than float32 is that of every tensor; with float32 dtypes are the program's own.

    Raises:
        UsageError: a wrong file or function, or one that returns something else.
        ProgramError: the program fails, or does something else each time.
        OutOfMemoryError: its forward pass does not fit in memory.
    """
    if MARK not in argument:
        raise UsageError(f"`{argument}` names no function", f"write `{argument or 'FILE.py'}:MAKE`")
    make = load_name(argument)
    check_callable(make, (None,), f"`{argument}`", "it takes the device as its one argument")
    dtype = None if options.dtype == "float32" else options.dtype
    program = Program(argument, make, dtype, options.seed, {})  # type: ignore[arg-type]
    return [ProgramWorkload(program, try_out(program))]
