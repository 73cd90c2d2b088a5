"""The options of `ckpt compare`."""

from __future__ import annotations

from ckptcli.options.group import Options, group
from ckptcli.options.measuring import MachinesOptions, ThresholdOptions
from ckptcli.options.output import (
    ExportOptions,
    GateOptions,
    JsonOptions,
    QuietOptions,
    ScreenOptions,
    StrictOptions,
)
from ckptcli.options.program import ConfigOptions


class CompareOptions(Options):
    """`ckpt compare`."""

    threshold: ThresholdOptions = group(
        ThresholdOptions,
        threshold_percent={"help": "Times within this of the base's are `same`."},
    )
    machines: MachinesOptions = group(MachinesOptions)
    data: JsonOptions = group(
        JsonOptions, as_json={"help": "Print one JSON object, schema ckpt.compare/1."}
    )
    export: ExportOptions = group(
        ExportOptions,
        export_paths={
            "help": "Write the comparison too, repeatable; the suffix says the format: .md .json; "
            "- is stdout."
        },
    )
    screen: ScreenOptions = group(ScreenOptions)
    notes: QuietOptions = group(QuietOptions)
    gates: GateOptions = group(GateOptions)
    strictness: StrictOptions = group(StrictOptions)
    settings: ConfigOptions = group(ConfigOptions)
