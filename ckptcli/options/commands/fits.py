"""The options of `ckpt fits`."""

from __future__ import annotations

from ckptcli.options.group import Options, group
from ckptcli.options.measuring import DeviceMemoryOptions, RoundOptions
from ckptcli.options.option import option
from ckptcli.options.output import JsonOptions, QuietOptions, ScreenOptions
from ckptcli.options.program import (
    ConfigOptions,
    DeviceOptions,
    GradientOptions,
    MemoryCheckOptions,
    ProgramOptions,
    StrategyOptions,
)
from ckptcli.options.sweeping import ResultOptions
from ckptcli.options.workload import WorkloadOptions

_ONCE = "it is what this command is for"


class OverOptions(Options):
    """What is made as large as fits."""

    over: str = option(
        "n",
        "The size that is made as large as fits.",
        choices=("n", "layers", "batch", "steps", "chi"),
        not_in_settings=_ONCE,
    )


class FitsOptions(Options):
    """`ckpt fits`."""

    limit: DeviceMemoryOptions = group(
        DeviceMemoryOptions,
        device_memory={"help": "How much memory the device has, such as 80GB."},
    )
    size: OverOptions = group(OverOptions)
    strategies: StrategyOptions = group(StrategyOptions)
    program: ProgramOptions = group(ProgramOptions)
    workload: WorkloadOptions = group(WorkloadOptions)
    device: DeviceOptions = group(DeviceOptions)
    gradients: GradientOptions = group(GradientOptions)
    rounds: RoundOptions = group(
        RoundOptions,
        memory_only={"help": "Take no times, and so say none."},
        timeout_s={"help": "Give up on a point after this; what it would prove is not proven."},
    )
    results: ResultOptions = group(
        ResultOptions,
        retry={"help": "With --out or --store: measure the points that failed once more."},
    )
    data: JsonOptions = group(JsonOptions, as_json={"help": "Print one JSON object, ckpt.fits/1."})
    screen: ScreenOptions = group(ScreenOptions)
    notes: QuietOptions = group(QuietOptions)
    memory: MemoryCheckOptions = group(MemoryCheckOptions)
    settings: ConfigOptions = group(ConfigOptions)
