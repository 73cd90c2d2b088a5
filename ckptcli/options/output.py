"""Options that say where the result goes and what it looks like."""

from __future__ import annotations

from ckptcli.options.group import Options
from ckptcli.options.option import option
from ckptcli.options.refusals import Refusal
from ckptcli.options.subjects import EXPERIMENT, FUNCTION, MODULE, WORKLOAD

_PROFILES = frozenset({WORKLOAD, MODULE, FUNCTION})
_LOST = frozenset({EXPERIMENT})
STDOUT = "-"
_BY_PARENT = "the parent writes the result"
_LOOKS = "it says where the result goes, not what is measured"


class JsonOptions(Options):
    """Whether the result is data."""

    as_json: bool = option(
        False,
        "Print one JSON object.",
        section="Output",
        key="json",
        refuses=(
            Refusal(("export_paths",), lambda _, path: path == STDOUT),
            Refusal(("stats", "hist", "timeline")),
        ),
        not_reproduced=_LOOKS,
    )


class ExportOptions(Options):
    """Which files are written."""

    export_paths: tuple[str, ...] = option(
        (),
        "Write the result too, repeatable; the suffix says the format: .json .csv .md .html "
        ".trace.json .svg .png; - is stdout.",
        section="Output",
        key="export",
        metavar="FILE",
        names="file",
        has_blanks=True,
        refuses=(Refusal(("format_name",), lambda paths, _: STDOUT not in paths, by_default=True),),
        not_from_found="a file that would be written",
        subjects=_PROFILES,
        refused_by=_LOST,
        not_in_child=_BY_PARENT,
        not_reproduced=_LOOKS,
    )
    format_name: str | None = option(
        None,
        "The format of `--export -`.",
        section="Output",
        key="format",
        metavar="NAME",
        names="format",
        subjects=_PROFILES,
        refused_by=_LOST,
        not_in_child=_BY_PARENT,
        not_reproduced=_LOOKS,
    )
    force: bool = option(
        False,
        "Replace files that exist.",
        section="Output",
        not_from_found="which lets files be overwritten",
        subjects=_PROFILES,
        not_in_child=_BY_PARENT,
        not_reproduced="whether a file is in the way changes no figure",
    )


class ScreenOptions(Options):
    """What the screen is like."""

    color: str = option(
        "auto",
        "Colour in the output.",
        section="Output",
        choices=("auto", "always", "never"),
        not_in_child=_BY_PARENT,
        not_reproduced=_LOOKS,
    )
    width: int | None = option(
        None,
        "Width of the screen.",
        section="Output",
        metavar="COLUMNS",
        at_least=40,
        default_text="the terminal's",
        not_in_child=_BY_PARENT,
        not_reproduced=_LOOKS,
    )


class VerboseOptions(Options):
    """How much the screen says."""

    verbose: bool = option(
        False,
        "List what was live at the peak.",
        section="Output",
        short="v",
        subjects=_PROFILES,
        not_in_child=_BY_PARENT,
        not_reproduced=_LOOKS,
    )


class QuietOptions(Options):
    """What stderr says."""

    quiet: bool = option(
        False,
        "No warnings.",
        section="Output",
        short="q",
        not_in_child="the parent tells the warnings of its children",
        not_reproduced=_LOOKS,
    )


METRICS = (
    "time",
    "forward",
    "backward",
    "step",
    "saved_bytes",
    "peak_bytes",
    "ledger_peak_bytes",
    "recomputed",
)
"""What a condition can be on."""


class GateOptions(Options):
    """What decides the exit code."""

    conditions: tuple[str, ...] = option(
        (),
        "Exit with 3 if it holds, repeatable: [STRATEGY.]METRIC OP VALUE[%], METRIC of "
        f"{', '.join(METRICS)}.",
        section="Exit codes for scripts",
        key="fail-on",
        metavar="EXPR",
        has_blanks=True,
        subjects=_PROFILES,
        refused_by=_LOST,
        not_in_child="the parent judges the whole",
        not_reproduced="it decides the exit code, not what is measured",
    )


class StrictOptions(Options):
    """Whether what nobody could decide ends well."""

    strict: bool = option(
        False,
        "Exit with 4 if a time verdict is `unclear`, or where there is none to give.",
        section="Exit codes for scripts",
        subjects=_PROFILES,
        refused_by=_LOST,
        not_in_child="the parent judges the whole",
        not_reproduced="it decides the exit code, not what is measured",
    )
