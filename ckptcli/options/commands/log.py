"""The options of `ckpt log`."""

from __future__ import annotations

from ckptcli.options.group import Options, group
from ckptcli.options.option import option
from ckptcli.options.output import JsonOptions, QuietOptions, ScreenOptions
from ckptcli.options.program import (
    ConfigOptions,
    DeviceOptions,
    MemoryCheckOptions,
    ProgramOptions,
    StrategyOptions,
)
from ckptcli.options.workload import WorkloadOptions


class LogOptions(Options):
    """`ckpt log`."""

    strategies: StrategyOptions = group(
        StrategyOptions, strategy_texts={"default_text": "balanced; a graph case's own"}
    )
    program: ProgramOptions = group(ProgramOptions)
    workload: WorkloadOptions = group(WorkloadOptions, layers={"default": 2}, n={"default": 64})
    device: DeviceOptions = group(DeviceOptions)
    level_name: str | None = option(
        None,
        "How much to print; medium prints what basic does, as in Burn.",
        section="Output",
        key="level",
        metavar="basic|medium|full",
        names="level",
        default_text="the configuration's, else full",
    )
    explain: bool = option(
        False, "Say of each node what became of it, and sum up.", section="Output"
    )
    diff: tuple[str, str] | None = option(
        None,
        "Set the retrievals of two strategies side by side.",
        section="Output",
        metavar="A B",
        names="strategy",
        not_in_settings="it is another output, for once",
    )
    sort: str = option(
        "today",
        "Count in a last line what Burn's sort took before its pull request 5679.",
        section="Output",
        choices=("today", "before-5679"),
        not_in_settings="it is another output, for once",
    )
    data: JsonOptions = group(JsonOptions, as_json={"help": "Print one JSON object a pass."})
    screen: ScreenOptions = group(ScreenOptions)
    notes: QuietOptions = group(QuietOptions)
    memory: MemoryCheckOptions = group(MemoryCheckOptions)
    settings: ConfigOptions = group(ConfigOptions)
