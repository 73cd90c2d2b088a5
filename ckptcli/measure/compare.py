"""Two saved runs of one workload, strategy by strategy, of several programs point by point.

Memory is compared exactly. Times of two runs cannot be paired (`ckptcli.measure.bootstrap`), and a
verdict on them is `unclear`, whatever the interval says, when a run has samples of one process only
or when the machines differ: such a difference is as likely the process's or the machine's.

Invariant: the same two records give the same comparison; the seed is a hash of their samples.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace

from ckptcli.errors import UsageError
from ckptcli.measure.bootstrap import unpaired_ratio
from ckptcli.measure.point import Point, beside_point
from ckptcli.measure.record import RunRecord
from ckptcli.measure.rounds import Sample
from ckptcli.measure.row import PHASES, Row
from ckptcli.measure.run_pairs import (
    Difference,
    Pair,
    differences,
    figured,
    pairs_of,
    place_of,
    refuse_other_workload,
)
from ckptcli.measure.statistics import Ratio
from ckptcli.options.measuring import THRESHOLD
from ckptcli.units import count

FEWEST_PROCESSES = 2
ENOUGH_PROCESSES = 5
"""Simulated: equal programs whose processes differ by 3 % are called different in 32 of 100
comparisons of 2 processes each, in 10 of 3, in 4 to 7 of 5, in 3 of 10."""


@dataclass(frozen=True, slots=True)
class Change:
    """An exact figure before and after; None where it is not known."""

    base: int | None
    new: int | None

    @property
    def percent(self) -> float | None:
        """The change in percent; None from nothing, or where a figure is not known."""
        if self.base is None or self.new is None or not self.base:
            return None
        return (self.new / self.base - 1.0) * 100.0


@dataclass(frozen=True, slots=True)
class StrategyComparison:
    """One strategy of one engine in both runs.

    Attributes:
        strategy: how the new run calls it, at its point.
        point: where its program stands among several, in either run.
        ratios: new over base for each phase that both time; None where a side has no sample.
        saved_bytes, peak_bytes, ledger_peak_bytes, recomputed_nodes: exact figures.
        gradients_identical: bit for bit; None where the seeds differ, or nobody has the bits.
    """

    strategy: str
    point: Point
    base: Row
    new: Row
    ratios: dict[str, Ratio] | None
    saved_bytes: Change
    peak_bytes: Change
    ledger_peak_bytes: Change
    recomputed_nodes: Change
    gradients_identical: bool | None

    @property
    def label(self) -> str:
        """Where its program stands, and how it is called there."""
        return beside_point(self.point, self.strategy)


@dataclass(frozen=True, slots=True)
class RunComparison:
    """Two runs side by side.

    Attributes:
        comparisons: how many strategies are in both: verdicts are corrected for it.
        only_base, only_new: strategies without a partner.
        machinedifferences: fields of the machine record that differ.
        caps: why every time verdict is `unclear`; empty if the intervals decide.
        notes: what else to know before believing the figures.
    """

    base: RunRecord
    new: RunRecord
    threshold: float
    comparisons: int
    strategies: Sequence[StrategyComparison]
    only_base: Sequence[str]
    only_new: Sequence[str]
    machine_differences: Sequence[Difference]
    caps: Sequence[str]
    notes: Sequence[str]

    @property
    def unclear(self) -> list[str]:
        """The strategies whose total time got no other verdict than `unclear`, or none."""
        return [
            entry.label
            for entry in self.strategies
            if entry.ratios is None or entry.ratios["total"].verdict == "unclear"
        ]


def compare(
    base: RunRecord,
    new: RunRecord,
    *,
    threshold: float = THRESHOLD,
    allow_different_machines: bool = False,
) -> RunComparison:
    """Compare two runs of one workload.

    Args:
        base: what to compare with.
        new: what is compared.
        threshold: a time ratio within this of 1 is `same`.
        allow_different_machines: let the intervals decide even if the machine records differ.

    Raises:
        UsageError: different workloads or devices, no strategy in common, or a sample of no time.
    """
    varying = tuple(dict.fromkeys([*new.varying, *base.varying]))
    refuse_other_workload(base, new, varying)
    pairs = pairs_of(base, new, varying)
    machines = tuple(differences(_surroundings(base), _surroundings(new)))
    caps = [
        *_process_caps(*_fewest_processes(pairs)),
        *([_machine_cap(machines)] if machines and not allow_different_machines else []),
    ]
    same_seed = base.seed == new.seed
    common = [id(row) for pair in pairs for row in pair]
    return RunComparison(
        base=base,
        new=new,
        threshold=threshold,
        comparisons=len(pairs),
        strategies=tuple(
            _compared(
                new.name_of(row),
                place_of(row, new, varying),
                was,
                row,
                threshold,
                len(pairs),
                caps,
                same_seed,
            )
            for was, row in pairs
        ),
        only_base=tuple(base.label(row) for row in figured(base) if id(row) not in common),
        only_new=tuple(new.label(row) for row in figured(new) if id(row) not in common),
        machine_differences=machines,
        caps=tuple(caps),
        notes=(
            *_process_notes(*_fewest_processes(pairs)),
            *_notes(base, new, machines if allow_different_machines else ()),
        ),
    )


def processes_of(row: Row) -> int:
    """How many processes the samples come from."""
    return len({sample.process for sample in row.samples})


def _surroundings(record: RunRecord) -> dict[str, object]:
    """The machine, and the library that computes instead of NumPy's version, which may be it."""
    machine = asdict(record.machine)
    del machine["numpy"]
    return {**machine, "library": record.library}


def _fewest_processes(pairs: Sequence[Pair]) -> tuple[int, int]:
    """Of the base and of the new run: the least that a strategy's samples come from."""
    return min(processes_of(base) for base, _ in pairs), min(processes_of(new) for _, new in pairs)


def _process_caps(base: int, new: int) -> list[str]:
    if min(base, new) >= FEWEST_PROCESSES:
        return []
    return [
        f"the base has samples of {count(base, 'process')}, the new run of "
        f"{count(new, 'process')}, and times differ from process to process; make both with "
        f"`{_ADVICE}`"
    ]


def _process_notes(base: int, new: int) -> list[str]:
    if not FEWEST_PROCESSES <= min(base, new) < ENOUGH_PROCESSES:
        return []
    return [
        f"samples of {count(min(base, new), 'process')} say little about how processes differ: a "
        f"difference may be theirs; `{_ADVICE}` is safer"
    ]


_ADVICE = f"--processes {ENOUGH_PROCESSES}"


def _machine_cap(differences: Sequence[Difference]) -> str:
    return (
        f"the machines differ: {', '.join(map(str, differences))}; "
        "`--allow-different-machines` compares all the same"
    )


def _notes(base: RunRecord, new: RunRecord, machines: Sequence[Difference]) -> list[str]:
    notes = []
    if base.seed != new.seed:
        notes.append(
            f"the seeds differ, {base.seed} and {new.seed}: gradients cannot be compared, "
            "memory and times can"
        )
    if base.title != new.title:
        notes.append(f"the runs call their workload `{base.title}` and `{new.title}`")
    if base.version != new.version:
        notes.append(f"the runs were made by ckpt {base.version} and {new.version}")
    if machines:
        notes.append(f"the machines differ, as allowed: {', '.join(map(str, machines))}")
    partial = [name for name, run in (("base", base), ("new run", new)) if run.partial]
    if partial:
        notes.append(f"partial, since measuring was cut short: {' and '.join(partial)}")
    return notes


def _compared(
    name: str,
    point: Point,
    base: Row,
    new: Row,
    threshold: float,
    comparisons: int,
    caps: Sequence[str],
    same_seed: bool,
) -> StrategyComparison:
    ratios = _ratios(name, base, new, threshold, comparisons)
    if caps:
        ratios = {phase: replace(ratio, verdict="unclear") for phase, ratio in ratios.items()}
    ledgers = [None if r.memory is None else r.memory.ledger_peak_bytes for r in (base, new)]
    return StrategyComparison(
        strategy=name,
        point=point,
        base=base,
        new=new,
        ratios=ratios or None,
        saved_bytes=Change(base.saved_bytes, new.saved_bytes),
        peak_bytes=Change(base.peak_bytes, new.peak_bytes),
        ledger_peak_bytes=Change(*ledgers),
        recomputed_nodes=Change(base.recomputed_nodes, new.recomputed_nodes),
        gradients_identical=_identical(base, new) if same_seed else None,
    )


def _identical(base: Row, new: Row) -> bool | None:
    digests = [None if r.outcome is None else r.outcome.grad_sha256 for r in (base, new)]
    return None if None in digests else digests[0] == digests[1]


def _ratios(name: str, base: Row, new: Row, threshold: float, comparisons: int) -> dict[str, Ratio]:
    return {
        phase: unpaired_ratio(
            _by_process(name, new, phase),
            _by_process(name, base, phase),
            seed=_seed(base, new),
            threshold=threshold,
            comparisons=comparisons,
        )
        for phase in PHASES
        if base.seconds(phase) and new.seconds(phase)
    }


def _by_process(name: str, row: Row, phase: str) -> list[list[float]]:
    """The samples of a phase, a list a process."""
    groups: dict[int, list[float]] = {}
    for sample, time_s in zip(row.samples, row.seconds(phase)):
        if time_s <= 0.0:
            raise UsageError(
                f"strategy `{name}` has a {phase} sample of {time_s:g} s",
                "no ratio can be taken of it; measure again",
            )
        groups.setdefault(sample.process, []).append(time_s)
    return list(groups.values())


def _seed(base: Row, new: Row) -> int:
    """A number that only the samples of both decide."""
    samples = [[_known_of(sample) for sample in row.samples] for row in (base, new)]
    digest = hashlib.sha256(json.dumps(samples, sort_keys=True).encode())
    return int.from_bytes(digest.digest()[:8], "big")


_LATER = ("whole_s", "step_s")


def _known_of(sample: Sample) -> dict[str, object]:
    """A sample says nothing of phases that it does not have, as those of older files."""
    return {k: v for k, v in asdict(sample).items() if v is not None or k not in _LATER}
