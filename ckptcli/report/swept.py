"""What is written of a sweep, whatever the format."""

from __future__ import annotations

from dataclasses import dataclass

from ckptcli.sweep.laws.of_sweep import Laws
from ckptcli.sweep.result import SweepResult


@dataclass(frozen=True, slots=True)
class Swept:
    """A sweep and what it follows."""

    sweep: SweepResult
    laws: Laws
