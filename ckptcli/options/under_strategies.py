"""What commands have in common that look at a subject under strategies."""

from __future__ import annotations

from ckptcli.options.group import Options, group
from ckptcli.options.program import (
    BlockOptions,
    DeviceOptions,
    FunctionOptions,
    InputOptions,
    PeerOptions,
    ProgramOptions,
    StrategyOptions,
)
from ckptcli.options.workload import WorkloadOptions


class UnderStrategies(Options):
    """The strategies, and whatever may be a subject: a workload, a function, a module."""

    strategies: StrategyOptions = group(StrategyOptions)
    program: ProgramOptions = group(ProgramOptions)
    workload: WorkloadOptions = group(WorkloadOptions)
    device: DeviceOptions = group(DeviceOptions)
    function: FunctionOptions = group(FunctionOptions)
    peers: PeerOptions = group(PeerOptions)
    blocks: BlockOptions = group(BlockOptions)
    inputs: InputOptions = group(InputOptions)
