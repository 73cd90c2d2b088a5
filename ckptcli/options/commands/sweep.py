"""The options of `ckpt sweep`: those of a point, where several values may stand for one, and what a
sweep goes over.
"""

from __future__ import annotations

from ckptcli.options.commands.run import PointOptions
from ckptcli.options.group import group
from ckptcli.options.measuring import MachinesOptions, RoundOptions
from ckptcli.options.output import ExportOptions, JsonOptions
from ckptcli.options.program import DeviceOptions, InputOptions
from ckptcli.options.sweeping import AxisOptions, PlaceOptions, ResultOptions, SchedulerOptions
from ckptcli.options.workload import WorkloadOptions


class SweepOptions(PointOptions):
    """`ckpt sweep`."""

    workload: WorkloadOptions = group(WorkloadOptions, dtype={"kind": "words"})
    device: DeviceOptions = group(
        DeviceOptions, backend_name={"kind": "words"}, device_name={"kind": "words"}
    )
    inputs: InputOptions = group(
        InputOptions,
        keyword_texts={
            "help": "With --module: call MAKE with this keyword, repeatable; several, depth=2,4,8.",
            "metavar": "NAME=VALUE[,...]",
        },
    )
    rounds: RoundOptions = group(
        RoundOptions,
        timeout_s={"help": "Stop a point after this; it is a point that failed."},
        max_time_s={"help": "Of each point, without --reps: begin no round after this."},
    )
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
    axes: AxisOptions = group(AxisOptions)
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
