"""The options of `ckpt run`, and of `ckpt config`, which prints what `ckpt run` would use."""

from __future__ import annotations

from ckptcli.options.group import group
from ckptcli.options.measuring import DeviceMemoryOptions, RoundOptions, ThresholdOptions
from ckptcli.options.output import (
    ExportOptions,
    GateOptions,
    JsonOptions,
    QuietOptions,
    ScreenOptions,
    StrictOptions,
    VerboseOptions,
)
from ckptcli.options.program import (
    ConfigOptions,
    FaultOptions,
    GradientOptions,
    MemoryCheckOptions,
    ReplayOptions,
    ShapeOptions,
    TrainingOptions,
)
from ckptcli.options.under_strategies import UnderStrategies


class PointOptions(UnderStrategies):
    """What measures one point, alone or among those of a sweep."""

    shapes: ShapeOptions = group(ShapeOptions)
    training: TrainingOptions = group(TrainingOptions)
    rounds: RoundOptions = group(RoundOptions)
    limit: DeviceMemoryOptions = group(DeviceMemoryOptions)
    gradients: GradientOptions = group(GradientOptions)
    replaying: ReplayOptions = group(ReplayOptions)
    threshold: ThresholdOptions = group(ThresholdOptions)
    data: JsonOptions = group(
        JsonOptions, as_json={"help": "Print one JSON object, schema ckpt.run/1."}
    )
    export: ExportOptions = group(ExportOptions)
    screen: ScreenOptions = group(ScreenOptions)
    notes: QuietOptions = group(QuietOptions, quiet={"help": "No progress, no warnings."})
    gates: GateOptions = group(GateOptions)
    strictness: StrictOptions = group(StrictOptions)
    fault: FaultOptions = group(FaultOptions)
    memory: MemoryCheckOptions = group(MemoryCheckOptions)
    settings: ConfigOptions = group(ConfigOptions)


class RunOptions(PointOptions):
    """`ckpt run`."""

    details: VerboseOptions = group(VerboseOptions)
