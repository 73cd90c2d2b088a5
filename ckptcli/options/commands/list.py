"""The options of `ckpt ops` and `ckpt backends`, which list what there is."""

from __future__ import annotations

from ckptcli.options.group import Options, group
from ckptcli.options.output import JsonOptions, QuietOptions
from ckptcli.options.program import ConfigOptions


class ListOptions(Options):
    """`ckpt ops` and `ckpt backends`."""

    data: JsonOptions = group(JsonOptions)
    notes: QuietOptions = group(QuietOptions)
    settings: ConfigOptions = group(ConfigOptions)
