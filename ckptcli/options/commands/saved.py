"""The options of `ckpt saved`."""

from __future__ import annotations

from ckptcli.options.group import Options, group
from ckptcli.options.option import option
from ckptcli.options.output import JsonOptions, QuietOptions, ScreenOptions
from ckptcli.options.program import (
    ConfigOptions,
    MemoryCheckOptions,
    PeerOptions,
    ShapeOptions,
    StrategyOptions,
)
from ckptcli.options.subjects import FUNCTION, MODULE, WORKLOAD
from ckptcli.options.under_strategies import UnderStrategies
from ckptcli.options.workload import WorkloadOptions


class TotalOptions(Options):
    """What sums are taken of."""

    by_text: str | None = option(
        None,
        "Sums and shares by this instead of the list; modules and types are of --module, functions "
        "of --function.",
        section="Output",
        key="by",
        choices=("module", "type", "op", "line", "function", "name"),
        subjects=frozenset({WORKLOAD, FUNCTION, MODULE}),
    )
    depth: int | None = option(
        None,
        "With --by module: how many names of a path count.",
        section="Output",
        at_least=1,
        default_text="all",
        subjects=frozenset({MODULE}),
    )


class SavedOptions(UnderStrategies):
    """`ckpt saved`."""

    strategies: StrategyOptions = group(
        StrategyOptions, strategy_texts={"subjects": frozenset({WORKLOAD, FUNCTION, MODULE})}
    )
    workload: WorkloadOptions = group(WorkloadOptions, layers={"default": 2}, n={"default": 64})
    peers: PeerOptions = group(
        PeerOptions,
        engine_names={"help": "With --module: the library that the module is of, torch."},
    )
    shapes: ShapeOptions = group(ShapeOptions)
    totals: TotalOptions = group(TotalOptions)
    data: JsonOptions = group(JsonOptions, as_json={"help": "Print one JSON object a program."})
    screen: ScreenOptions = group(ScreenOptions)
    notes: QuietOptions = group(QuietOptions)
    memory: MemoryCheckOptions = group(MemoryCheckOptions)
    settings: ConfigOptions = group(ConfigOptions)
