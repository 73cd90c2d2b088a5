"""The options of `ckpt ops` and `ckpt backends`, which list what there is."""

from __future__ import annotations

from dataclasses import dataclass

from ckptcli.options.option import group
from ckptcli.options.output import JsonOptions, QuietOptions
from ckptcli.options.program import ConfigOptions


@dataclass(frozen=True, slots=True)
class ListOptions:
    """`ckpt ops` and `ckpt backends`."""

    data: JsonOptions = group(JsonOptions)
    notes: QuietOptions = group(QuietOptions)
    settings: ConfigOptions = group(ConfigOptions)
