"""The options of `ckpt sweep`: those of `ckpt run`, and what a sweep goes over."""

from __future__ import annotations

from ckptcli.options.group import Options, group
from ckptcli.options.measuring import (
    DeviceMemoryOptions,
    MachinesOptions,
    RoundOptions,
    ThresholdOptions,
)
from ckptcli.options.output import (
    ExportOptions,
    GateOptions,
    JsonOptions,
    QuietOptions,
    ScreenOptions,
    StrictOptions,
)
from ckptcli.options.program import (
    BlockOptions,
    ConfigOptions,
    DeviceOptions,
    FaultOptions,
    FunctionOptions,
    GradientOptions,
    InputOptions,
    MemoryCheckOptions,
    PeerOptions,
    ProgramOptions,
    ReplayOptions,
    ShapeOptions,
    StrategyOptions,
    TrainingOptions,
)
from ckptcli.options.sweeping import AxisOptions, PlaceOptions, ResultOptions, SchedulerOptions
from ckptcli.options.workload import WorkloadOptions


class SweepOptions(Options):
    """`ckpt sweep`."""

    strategies: StrategyOptions = group(StrategyOptions)
    program: ProgramOptions = group(ProgramOptions)
    workload: WorkloadOptions = group(WorkloadOptions, dtype={"kind": "words"})
    axes: AxisOptions = group(AxisOptions)
    device: DeviceOptions = group(
        DeviceOptions, backend_name={"kind": "words"}, device_name={"kind": "words"}
    )
    function: FunctionOptions = group(FunctionOptions)
    peers: PeerOptions = group(PeerOptions)
    blocks: BlockOptions = group(BlockOptions)
    inputs: InputOptions = group(
        InputOptions,
        keyword_texts={
            "help": "With --module: call MAKE with this keyword, repeatable; several, depth=2,4,8.",
            "metavar": "NAME=VALUE[,...]",
        },
    )
    shapes: ShapeOptions = group(ShapeOptions)
    training: TrainingOptions = group(TrainingOptions)
    rounds: RoundOptions = group(
        RoundOptions,
        timeout_s={"help": "Stop a point after this; it is a point that failed."},
        max_time_s={"help": "Of each point, without --reps: begin no round after this."},
    )
    limit: DeviceMemoryOptions = group(DeviceMemoryOptions)
    gradients: GradientOptions = group(GradientOptions)
    replaying: ReplayOptions = group(ReplayOptions)
    threshold: ThresholdOptions = group(ThresholdOptions)
    machines: MachinesOptions = group(
        MachinesOptions,
        allow_different_machines={
            "help": "Give laws of times even if points are of several machines.",
            "not_in_child": "the points of several are the parent's",
        },
    )
    place: PlaceOptions = group(PlaceOptions)
    scheduler: SchedulerOptions = group(SchedulerOptions)
    results: ResultOptions = group(ResultOptions)
    data: JsonOptions = group(
        JsonOptions, as_json={"help": "Print one JSON object, schema ckpt.sweep/1."}
    )
    export: ExportOptions = group(
        ExportOptions,
        export_paths={
            "help": "Write the result too, repeatable; the suffix says the format: .md .csv .json "
            ".html .svg .png; - is stdout."
        },
    )
    screen: ScreenOptions = group(ScreenOptions)
    notes: QuietOptions = group(QuietOptions, quiet={"help": "No progress, no warnings."})
    gates: GateOptions = group(GateOptions)
    strictness: StrictOptions = group(StrictOptions)
    fault: FaultOptions = group(FaultOptions)
    memory: MemoryCheckOptions = group(MemoryCheckOptions)
    settings: ConfigOptions = group(ConfigOptions)
