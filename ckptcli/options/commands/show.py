"""The options of `ckpt show`."""

from __future__ import annotations

from ckptcli.options.group import Options, group
from ckptcli.options.option import option
from ckptcli.options.output import (
    ExportOptions,
    JsonOptions,
    QuietOptions,
    ScreenOptions,
    VerboseOptions,
)
from ckptcli.options.program import ConfigOptions


class ShowOptions(Options):
    """`ckpt show`."""

    stats: bool = option(False, "Statistics of the times, a table a strategy.", section="Output")
    hist: bool = option(False, "Histogram of the total times, on common bins.", section="Output")
    timeline: bool = option(
        False, "Live bytes over the pass, and what sets the peak.", section="Output"
    )
    data: JsonOptions = group(JsonOptions, as_json={"help": "Print the record, schema ckpt.run/1."})
    export: ExportOptions = group(ExportOptions)
    screen: ScreenOptions = group(ScreenOptions)
    details: VerboseOptions = group(VerboseOptions)
    notes: QuietOptions = group(QuietOptions)
    settings: ConfigOptions = group(ConfigOptions)
