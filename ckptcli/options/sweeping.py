"""Options that say what a sweep goes over, what measures its points, and where they are kept."""

from __future__ import annotations

from ckptcli.options.group import Options
from ckptcli.options.option import option
from ckptcli.options.refusals import Refusal

_OF_THE_SWEEP = "it is about the whole sweep, not about a point of it"
_FILE = "a file is read where the command line says so"


class AxisOptions(Options):
    """Which points."""

    zipped: bool = option(
        False,
        "Take the first value of each list together, then the second, instead of all combinations.",
        key="zip",
        not_in_child=_OF_THE_SWEEP,
        not_reproduced=_OF_THE_SWEEP,
    )
    where_text: str | None = option(
        None,
        "Leave out the points for which this does not hold, 'layers * n <= 65536'.",
        key="where",
        metavar="CONDITION",
        not_in_child=_OF_THE_SWEEP,
        not_reproduced=_OF_THE_SWEEP,
    )
    grid_path: str | None = option(
        None,
        "A TOML file whose table [ckpt] has the options, lists too; the command line comes first.",
        key="grid",
        metavar="FILE",
        names="file",
        not_in_child=_OF_THE_SWEEP,
        not_reproduced=_OF_THE_SWEEP,
        not_in_settings=_FILE,
    )


class PlaceOptions(Options):
    """What measures the points."""

    engine_place: str = option(
        "local",
        "What measures the points: processes of this machine, the workers of Dask, or Slurm.",
        section="How to measure",
        key="on",
        choices=("local", "dask", "slurm"),
        refuses=(
            Refusal(("scheduler",), lambda place, _: place != "dask", by_default=True),
            Refusal(("slurm_texts",), lambda place, _: place != "slurm", by_default=True),
        ),
        not_in_child=_OF_THE_SWEEP,
        not_reproduced=_OF_THE_SWEEP,
    )


class SchedulerOptions(Options):
    """Of `--on dask` and `--on slurm`."""

    scheduler: str | None = option(
        None,
        "With --on dask: the address of a scheduler that runs.",
        section="How to measure",
        metavar="ADDRESS",
        default_text="a LocalCluster",
        not_in_child=_OF_THE_SWEEP,
        not_reproduced=_OF_THE_SWEEP,
    )
    slurm_texts: tuple[str, ...] = option(
        (),
        "With --on slurm: a parameter of sbatch, partition=gpu, repeatable.",
        section="How to measure",
        key="slurm",
        metavar="NAME=VALUE",
        not_in_child=_OF_THE_SWEEP,
        not_reproduced=_OF_THE_SWEEP,
        not_from_found="what a cluster would be asked for",
    )


class ResultOptions(Options):
    """Where the points are kept."""

    out_path: str | None = option(
        None,
        "Keep each point there as it comes; what is there is not measured again.",
        section="Output",
        key="out",
        metavar="FOLDER",
        names="file",
        not_in_child=_OF_THE_SWEEP,
        not_reproduced=_OF_THE_SWEEP,
        not_in_settings="a folder is written where the command line says so",
    )
    store_path: str | None = option(
        None,
        "Keep the points in a DuckDB file instead, for SQL.",
        section="Output",
        key="store",
        metavar="FILE",
        names="file",
        not_in_child=_OF_THE_SWEEP,
        not_reproduced=_OF_THE_SWEEP,
        not_in_settings="a file is written where the command line says so",
    )
    retry: bool = option(
        False,
        "With --out or --store: measure the points that failed once more.",
        section="Output",
        not_in_child=_OF_THE_SWEEP,
        not_reproduced=_OF_THE_SWEEP,
        not_in_settings="it is for once",
    )
