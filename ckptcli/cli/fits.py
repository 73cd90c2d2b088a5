"""`ckpt fits`: the largest size that fits a device, under each strategy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

from ckptcli.cli.command import options_command
from ckptcli.cli.standard_streams import reader_may_leave
from ckptcli.cli.streams import Progress
from ckptcli.cli.sweep import store_of
from ckptcli.errors import CkptError, UsageError
from ckptcli.exit_codes import DONE

if TYPE_CHECKING:
    from ckptcli.cli.line import Line
    from ckptcli.options.commands.fits import FitsOptions
    from ckptcli.sweep.fits import Fit, Peak
    from ckptcli.sweep.laws.power import PowerLaw
    from ckptcli.sweep.result import PointResult
    from ckptcli.sweep.store import Store

PROOF_TIMEOUT_S = 30.0
"""What a point may take that proves the answer, without --timeout."""

TIMED_POINTS = 5
TIMED_ROUNDS = 5


@options_command("fits")
def command(options: FitsOptions, line: Line) -> int:
    """Say how large a size may be under each strategy before it does not fit a device.

    Small sizes give the law of the peak, which is exact; the answer and the next size are measured
    too where this machine allows it.

    \b
    ckpt fits --device-memory 80GB                        the width n of the silu network
    ckpt fits --device-memory 80GB --over batch -n 4096   the batch
    """
    from ckptcli.cli.stops import Stops
    from ckptcli.profiling.device_memory import limit_of

    limit_bytes = limit_of(options.limit.device_memory)
    if limit_bytes is None:
        raise UsageError("there is no limit to fit into", "give --device-memory, such as 80GB")
    with reader_may_leave(), store_of(options.results) as store, Stops(None) as stops:
        points = _Points(options, store)
        try:
            fits = _fits(options, points, limit_bytes)
        finally:
            points.progress.end()
        stops.measured()
        _print(options, limit_bytes, fits)
        return stops.exit_code or DONE
    return stops.exit_code


class _Points:
    """Points of the size that is asked for, each measured once."""

    def __init__(self, options: FitsOptions, store: Store) -> None:
        self.progress = Progress(options.notes.quiet)
        self._options = options
        self._store = store
        self._done = 0

    def peaks(self, size: int, *strategies: str) -> dict[str, Peak]:
        """The peak of each strategy at a size, by default of all; empty where it cannot be had."""
        from ckptcli.sweep.fits import Peak

        more: dict[str, Any] = {"memory_only": True, "reps": None, "processes": 1}
        if self._options.rounds.timeout_s is None:
            more["timeout_s"] = PROOF_TIMEOUT_S
        if strategies:
            more |= {"strategy_texts": strategies, "no_reference": True}
        return {
            name: Peak(row.memory.ledger_peak_bytes, row.memory.peak_bytes)
            for name, row in self._measured(size, more).rows().items()
            if row.memory is not None
            and row.memory.ledger_peak_bytes is not None
            and row.memory.peak_bytes is not None
        }

    def times_s(self, size: int) -> dict[str, float]:
        """The median time of a pass of each strategy at a size."""
        more = {} if self._options.rounds.reps is not None else {"reps": TIMED_ROUNDS}
        rows = self._measured(size, more).rows()
        known = {name: row.median_s("total") for name, row in rows.items()}
        return {name: time_s for name, time_s in known.items() if time_s is not None}

    def _measured(self, size: int, more: Mapping[str, Any]) -> PointResult:
        """The point; a wrong command line, which every size has, is an error."""
        from ckptcli.cli.sweep_tasks import planned
        from ckptcli.options.commands.sweep import SweepOptions
        from ckptcli.options.listing import built, options_of, values_of
        from ckptcli.sweep.engines.base import Request
        from ckptcli.sweep.engines.local import LocalEngine
        from ckptcli.sweep.running import run_tasks, to_measure

        known = {option.name for option in options_of(SweepOptions)}
        own = {name: v for name, v in values_of(self._options).items() if name in known}
        values = {**own, **more, self._options.size.over: size, "device_memory": None}
        tasks = planned(built(SweepOptions, values)).tasks
        left = to_measure(tasks, self._store, self._options.results.retry)
        run_tasks(left, self._store, LocalEngine(Request(memory_only=True)), _untold)
        self._done += 1
        self.progress.tell(
            f"points, {self._options.size.over} = {size}", self._done, self._done + 1
        )
        (result,) = self._store.results(tasks)
        return result


def _untold(done: int, most: int, text: str) -> None:
    del done, most, text


def _fits(options: FitsOptions, points: _Points, limit_bytes: int) -> list[Fit]:
    from ckptcli.sweep.fits import fit, ladder

    over = options.size.over
    found: dict[int, dict[str, Peak]] = {}

    def climb(size: int) -> int | None:
        peaks = points.peaks(size)
        if not peaks:
            return None
        found[size] = peaks
        return max(peak.peak_bytes for peak in peaks.values())

    sizes = ladder(over, climb, limit_bytes)
    if not sizes:
        raise CkptError(
            f"no pass could be measured at the smallest {over}", "see what `ckpt run` says of it"
        )
    names = list(dict.fromkeys(name for peaks in found.values() for name in peaks))
    laws = {} if options.rounds.memory_only else _time_laws(points, over, sizes)
    fits = []
    for name in names:
        known = {size: peaks[name] for size, peaks in found.items() if name in peaks}
        answer = fit(name, over, known, limit_bytes, lambda s, n: points.peaks(s, n).get(n))
        law = laws.get(name)
        time = law.at((answer.largest,)) if law is not None and answer.largest else None
        fits.append(replace(answer, time=time))
    return fits


def _time_laws(points: _Points, over: str, sizes: Sequence[int]) -> dict[str, PowerLaw]:
    """The power law of each strategy's time, from the largest sizes of the ladder."""
    from ckptcli.sweep.laws.power import fitted

    times = {size: points.times_s(size) for size in sorted(sizes)[-TIMED_POINTS:]}
    names = {name for known in times.values() for name in known}
    laws = {
        name: fitted((over,), {(size,): t[name] for size, t in times.items() if name in t})
        for name in names
    }
    return {name: law for name, law in laws.items() if law is not None}


def _print(options: FitsOptions, limit_bytes: int, fits: Sequence[Fit]) -> None:
    over = options.size.over
    if options.data.as_json:
        from ckptcli.cli.json_output import print_json
        from ckptcli.sweep.fits import fits_object

        print_json(fits_object(over, limit_bytes, fits))
        return
    from ckptcli.cli.screens import open_screen
    from ckptcli.report.fits_console import render_fits

    title = options.program.workload_text
    text = render_fits(title, over, limit_bytes, fits, open_screen(options.screen))
    click.echo(text, nl=False, color=True)
