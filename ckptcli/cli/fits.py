"""`ckpt fits`: the largest size that fits a device, under each strategy and the best plan."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import click

from ckptcli.cli.command import options_command
from ckptcli.cli.standard_streams import reader_may_leave
from ckptcli.cli.sweep import store_of
from ckptcli.errors import CkptError, UsageError
from ckptcli.exit_codes import DONE

if TYPE_CHECKING:
    from ckptcli.cli.fit_points import Points
    from ckptcli.cli.line import Line
    from ckptcli.options.commands.fits import FitsOptions
    from ckptcli.sweep.fitting.answer import Fit, Peak, Refused
    from ckptcli.sweep.fitting.ladder import Sizes
    from ckptcli.sweep.laws.power import PowerLaw

TIMED_POINTS = 5
PLANNED_POINTS = 5
"""Of the ladder, the largest: where the law of the least memory is made of."""


@options_command("fits")
def command(options: FitsOptions, line: Line) -> int:
    """Say how large a size may be under each strategy before it does not fit a device.

    Small sizes give the law of the peak, which is exact; the answer and the next size are measured
    too where this machine allows it. The last row is the best plan's, of `ckpt plan`.

    \b
    ckpt fits --device-memory 80GB                        the width n of the silu network
    ckpt fits --device-memory 80GB --over batch -n 4096   the batch
    ckpt fits --device-memory 24GB --module net.py:make --over batch --set depth=12 --fake
    """
    from ckptcli.cli.fit_points import Points
    from ckptcli.cli.stops import Stops
    from ckptcli.cli.subjects import subject_of
    from ckptcli.profiling.device_memory import limit_of
    from ckptcli.sweep.fitting.ladder import Sizes

    limit_bytes = limit_of(options.limit.device_memory)
    if limit_bytes is None:
        raise UsageError("there is no limit to fit into", "give --device-memory, such as 80GB")
    growing = subject_of(options, line).growing(options)
    sizes = Sizes(growing.over, options.size.multiple_of)
    with reader_may_leave(), store_of(options.results) as store, Stops(None) as stops:
        points = Points(options, growing, store, limit_bytes)
        try:
            fits = _Fits(options, sizes, points, limit_bytes).all()
        finally:
            points.progress.end()
        stops.measured()
        _print(options, growing.title, sizes, limit_bytes, fits)
        return stops.exit_code or DONE
    return stops.exit_code


class _Fits:
    """The answers of all strategies, from one ladder."""

    def __init__(
        self, options: FitsOptions, sizes: Sizes, points: Points, limit_bytes: int
    ) -> None:
        self._options = options
        self._sizes = sizes
        self._points = points
        self._limit_bytes = limit_bytes
        self._found: dict[int, dict[str, Peak]] = {}
        self._refused: dict[str, str] = {}
        """Strategy -> why it had no peak, at the last size at which it had none."""

    def all(self) -> list[Fit]:
        """Raises:
        CkptError: nothing could be measured.
        """
        from ckptcli.sweep.fitting.ladder import ladder

        sizes = ladder(self._sizes, self._climb, self._limit_bytes, self._points.ahead)
        if not sizes:
            first, over = self._sizes.first, self._sizes.over
            raise CkptError(
                f"no pass could be measured from {over} = {first} on: {self._points.why(first)}",
                "see what `ckpt run` says of it",
            )
        plans = {} if self._options.size.no_plan else self._plans(sizes)
        laws = self._time_laws(sizes, plans)
        names = dict.fromkeys(name for peaks in self._found.values() for name in peaks)
        fits = [self._fit(name) for name in names]
        fits += [_without_answer(n, why) for n, why in self._refused.items() if n not in names]
        fits += [] if self._options.size.no_plan else [self._best_plan(plans)]
        return [_timed(found, laws.get(found.strategy)) for found in fits]

    def _climb(self, size: int) -> int | None:
        from ckptcli.sweep.fitting.answer import Peak, Refused

        found = self._points.peaks(size)
        self._refused |= {n: f.reason for n, f in found.items() if isinstance(f, Refused)}
        peaks = {name: peak for name, peak in found.items() if isinstance(peak, Peak)}
        if not peaks:
            return None
        self._found[size] = peaks
        return max(peak.peak_bytes for peak in peaks.values())

    def _fit(self, name: str) -> Fit:
        from ckptcli.sweep.fitting.search import fit

        known = {size: peaks[name] for size, peaks in self._found.items() if name in peaks}

        def measure(size: int) -> Peak | Refused:
            return self._points.peak(size, name)

        return fit(name, self._sizes, known, self._limit_bytes, measure)

    def _plans(self, sizes: Sequence[int]) -> dict[int, str]:
        """The sizes that can be planned for, and what `-s` takes for the plan of least memory."""
        from ckptcli.sweep.fitting.answer import Refused

        words: dict[int, str] = {}
        for size in sorted(sizes)[-PLANNED_POINTS:]:
            planned = self._points.plan(size)
            if not isinstance(planned, Refused):
                words[size] = planned.least_word
        return words

    def _best_plan(self, words: Mapping[int, str]) -> Fit:
        """By planning at each size that is looked at; the answer is run."""
        from ckptcli.sweep.fitting.answer import BEST_PLAN, Refused
        from ckptcli.sweep.fitting.search import fit

        plans = _Plans(self._points, self._limit_bytes)
        known = plans.in_ladder(words)
        if not known:
            first = self._points.plan(max(self._found))
            return _without_answer(BEST_PLAN, first.reason if isinstance(first, Refused) else "")
        found = fit(
            BEST_PLAN, self._sizes, known, self._limit_bytes, plans.planned, plans.confirmed
        )
        return replace(found, word=plans.run.get(found.largest or 0))

    def _time_laws(self, sizes: Sequence[int], plans: Mapping[int, str]) -> dict[str, PowerLaw]:
        """The power law of each strategy's time, from the largest sizes of the ladder; of the best
        plan that of the plan that takes least, as plans do at the edge.
        """
        from ckptcli.sweep.fitting.answer import BEST_PLAN
        from ckptcli.sweep.laws.power import fitted

        if self._options.rounds.memory_only or not self._points.looks_at_values:
            return {}
        times: dict[str, dict[tuple[float, ...], float]] = {}
        for size in sorted(sizes)[-TIMED_POINTS:]:
            word = plans.get(size)
            known = self._points.times_s(size, *([] if word is None else [word]))
            for name, time_s in known.items():
                times.setdefault(name, {})[(size,)] = time_s
            if word in known:
                times.setdefault(BEST_PLAN, {})[(size,)] = known[word]
        laws = {name: fitted((self._sizes.over,), known) for name, known in times.items()}
        return {name: law for name, law in laws.items() if law is not None}


class _Plans:
    """The plan of each size, whose kernels may take more than it knows.

    Attributes:
        run: size -> what `-s` takes for the plan that was run there last.
    """

    def __init__(self, points: Points, limit_bytes: int) -> None:
        self.run: dict[int, str] = {}
        self._points = points
        self._limit_bytes = limit_bytes
        self._workspace_bytes = 0
        """Of the plans that were run; plans of modules do not know it."""

    def in_ladder(self, sizes: Iterable[int]) -> dict[int, Peak]:
        """The peaks that a law is made of, with the most that kernels took under any strategy: what
        is said by law alone has it.
        """
        from ckptcli.sweep.fitting.answer import Refused

        self._workspace_bytes = self._points.workspace_bytes
        found = {size: self.planned(size) for size in sizes}
        self._workspace_bytes = 0
        return {size: peak for size, peak in found.items() if not isinstance(peak, Refused)}

    def planned(self, size: int) -> Peak | Refused:
        """The least that a plan takes."""
        from ckptcli.sweep.fitting.answer import Peak, Refused

        found = self._points.plan(size)
        if isinstance(found, Refused):
            return found
        least_bytes, has_values = found.least_bytes, self._points.looks_at_values
        beside_bytes = self._workspace_bytes if found.knows_no_workspace else 0
        return Peak(least_bytes, least_bytes + beside_bytes, has_values, found.is_least)

    def confirmed(self, size: int) -> Peak | Refused:
        """The cheapest plan, run; where the workspace of kernels is too much, that of least."""
        from ckptcli.sweep.fitting.answer import Refused

        found = self._points.plan(size)
        if isinstance(found, Refused):
            return found
        peak: Peak | Refused = Refused("no plan was found")
        for word in found.words:
            self.run[size] = word
            peak = self._points.peak(size, word)
            if isinstance(peak, Refused) or peak.peak_bytes <= self._limit_bytes:
                break
        if found.knows_no_workspace and not isinstance(peak, Refused):
            self._workspace_bytes = peak.peak_bytes - peak.ledger_bytes
        return peak


def _timed(found: Fit, law: PowerLaw | None) -> Fit:
    return replace(found, time=law.at((found.largest,))) if law and found.largest else found


def _without_answer(strategy: str, why: str) -> Fit:
    from ckptcli.sweep.fitting.answer import Fit

    return Fit(strategy, None, None, None, False, why=why)


def _print(
    options: FitsOptions, title: str, sizes: Sizes, limit_bytes: int, fits: Sequence[Fit]
) -> None:
    if options.data.as_json:
        from ckptcli.cli.json_output import print_json
        from ckptcli.sweep.fitting.answer import fits_object

        print_json(fits_object(sizes.over, sizes.step, limit_bytes, fits))
        return
    from ckptcli.cli.screens import open_screen
    from ckptcli.report.fits_console import render_fits

    text = render_fits(title, sizes.over, limit_bytes, fits, open_screen(options.screen))
    click.echo(text, nl=False, color=True)
