"""The options of `ckpt saved`."""

from __future__ import annotations

from ckptcli.options.group import Options, group
from ckptcli.options.output import JsonOptions, QuietOptions, ScreenOptions
from ckptcli.options.program import (
    ConfigOptions,
    DeviceOptions,
    FunctionOptions,
    MemoryCheckOptions,
    PeerOptions,
    ProgramOptions,
    StrategyOptions,
)
from ckptcli.options.subjects import FUNCTION, WORKLOAD
from ckptcli.options.workload import WorkloadOptions


class SavedOptions(Options):
    """`ckpt saved`."""

    strategies: StrategyOptions = group(
        StrategyOptions, strategy_texts={"subjects": frozenset({WORKLOAD, FUNCTION})}
    )
    program: ProgramOptions = group(ProgramOptions)
    workload: WorkloadOptions = group(WorkloadOptions, layers={"default": 2}, n={"default": 64})
    device: DeviceOptions = group(DeviceOptions)
    function: FunctionOptions = group(FunctionOptions)
    peers: PeerOptions = group(
        PeerOptions,
        engine_names={"help": "With --module: the library that the module is of, torch."},
    )
    data: JsonOptions = group(JsonOptions, as_json={"help": "Print one JSON object a program."})
    screen: ScreenOptions = group(ScreenOptions)
    notes: QuietOptions = group(QuietOptions)
    memory: MemoryCheckOptions = group(MemoryCheckOptions)
    settings: ConfigOptions = group(ConfigOptions)
