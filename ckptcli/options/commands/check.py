"""The options of `ckpt check`."""

from __future__ import annotations

from ckptcli.options.group import Options, group
from ckptcli.options.output import JsonOptions, QuietOptions, ScreenOptions
from ckptcli.options.program import (
    ConfigOptions,
    DeviceOptions,
    FaultOptions,
    MemoryCheckOptions,
    ProgramOptions,
    StrategyOptions,
)
from ckptcli.options.workload import WorkloadOptions


class CheckOptions(Options):
    """`ckpt check`."""

    strategies: StrategyOptions = group(
        StrategyOptions, strategy_texts={"default_text": "balanced"}
    )
    program: ProgramOptions = group(ProgramOptions)
    workload: WorkloadOptions = group(WorkloadOptions, layers={"default": 4}, n={"default": 32})
    device: DeviceOptions = group(DeviceOptions)
    data: JsonOptions = group(JsonOptions, as_json={"help": "Print one JSON object a program."})
    screen: ScreenOptions = group(ScreenOptions)
    notes: QuietOptions = group(QuietOptions)
    fault: FaultOptions = group(FaultOptions)
    memory: MemoryCheckOptions = group(MemoryCheckOptions)
    settings: ConfigOptions = group(ConfigOptions)
