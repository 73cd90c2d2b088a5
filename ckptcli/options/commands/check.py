"""The options of `ckpt check`."""

from __future__ import annotations

from ckptcli.options.group import Options, group
from ckptcli.options.option import option
from ckptcli.options.output import JsonOptions, QuietOptions, ScreenOptions, StrictOptions
from ckptcli.options.program import (
    ConfigOptions,
    FaultOptions,
    MemoryCheckOptions,
    PeerOptions,
    StrategyOptions,
)
from ckptcli.options.under_strategies import UnderStrategies
from ckptcli.options.workload import WorkloadOptions


class FailingOptions(Options):
    """What is left behind of a failure."""

    failing_path: str | None = option(
        None,
        "If a check fails, write the smallest graph that still fails.",
        section="Output",
        key="save-failing",
        metavar="FILE",
        names="file",
        not_in_settings="a file is written where the command line says so",
    )


class CheckOptions(UnderStrategies):
    """`ckpt check`."""

    strategies: StrategyOptions = group(
        StrategyOptions, strategy_texts={"default_text": "balanced"}
    )
    workload: WorkloadOptions = group(WorkloadOptions, layers={"default": 4}, n={"default": 32})
    peers: PeerOptions = group(
        PeerOptions,
        engine_names={
            "help": "Check every strategy in this library too, repeatable; a wrong name lists all."
        },
    )
    data: JsonOptions = group(JsonOptions, as_json={"help": "Print one JSON object a program."})
    screen: ScreenOptions = group(ScreenOptions)
    notes: QuietOptions = group(QuietOptions)
    failing: FailingOptions = group(FailingOptions)
    strictness: StrictOptions = group(
        StrictOptions,
        strict={"help": "Exit with 4 if no finite difference can be used."},
    )
    fault: FaultOptions = group(FaultOptions)
    memory: MemoryCheckOptions = group(MemoryCheckOptions)
    settings: ConfigOptions = group(ConfigOptions)
