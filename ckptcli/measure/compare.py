"""Two saved runs of one workload, strategy by strategy.

Memory is compared exactly. Times of two runs cannot be paired (`ckptcli.measure.bootstrap`), and a
verdict on them is `unclear`, whatever the interval says, when a run has samples of one process only
or when the machines differ: such a difference is as likely the process's or the machine's.

Invariant: the same two records give the same comparison; the seed is a hash of their samples.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import TypeAlias

from ckptcli.errors import UsageError
from ckptcli.measure.bootstrap import unpaired_ratio
from ckptcli.measure.record import PHASES, RunRecord, StrategyRecord
from ckptcli.measure.statistics import Ratio

FEWEST_PROCESSES = 2
ENOUGH_PROCESSES = 5
"""Simulated: equal programs whose processes differ by 3 % are called different in 32 of 100
comparisons of 2 processes each, in 10 of 3, in 4 to 7 of 5, in 3 of 10."""


_Pair: TypeAlias = tuple[StrategyRecord, StrategyRecord]
"""A strategy in the base and in the new run."""


@dataclass(frozen=True, slots=True)
class Difference:
    """A field in which the two runs differ."""

    field: str
    base: object
    new: object

    def __str__(self) -> str:
        return f"{self.field} is `{self.base}` and `{self.new}`"


@dataclass(frozen=True, slots=True)
class Change:
    """An exact figure before and after."""

    base: int
    new: int

    @property
    def percent(self) -> float | None:
        """The change in percent; None from nothing."""
        return (self.new / self.base - 1.0) * 100.0 if self.base else None


@dataclass(frozen=True, slots=True)
class StrategyComparison:
    """One strategy in both runs.

    Attributes:
        ratios: new over base for each phase; None where a side has no sample.
        saved_bytes, peak_bytes, recomputed_nodes: exact figures; the peak is the ledger's.
        gradients_identical: bit for bit; None where the seeds differ.
    """

    strategy: str
    base: StrategyRecord
    new: StrategyRecord
    ratios: dict[str, Ratio] | None
    saved_bytes: Change
    peak_bytes: Change
    recomputed_nodes: Change
    gradients_identical: bool | None


@dataclass(frozen=True, slots=True)
class RunComparison:
    """Two runs side by side.

    Attributes:
        comparisons: how many strategies are in both: verdicts are corrected for it.
        only_base, only_new: strategies without a partner.
        machine_differences: fields of the machine record that differ.
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
            entry.strategy
            for entry in self.strategies
            if entry.ratios is None or entry.ratios["total"].verdict == "unclear"
        ]


def compare(
    base: RunRecord,
    new: RunRecord,
    *,
    threshold: float = 0.02,
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
    _refuse_other_workload(base, new)
    pairs = _pairs(base, new)
    machines = tuple(_differences(_surroundings(base), _surroundings(new)))
    caps = [
        *_process_caps(*_fewest_processes(pairs)),
        *([_machine_cap(machines)] if machines and not allow_different_machines else []),
    ]
    same_seed = base.seed == new.seed
    names = [strategy.strategy for strategy, _ in pairs]
    return RunComparison(
        base=base,
        new=new,
        threshold=threshold,
        comparisons=len(pairs),
        strategies=tuple(
            _compared(*pair, threshold, len(pairs), caps, same_seed) for pair in pairs
        ),
        only_base=tuple(s.strategy for s in base.strategies if s.strategy not in names),
        only_new=tuple(s.strategy for s in new.strategies if s.strategy not in names),
        machine_differences=machines,
        caps=tuple(caps),
        notes=(
            *_process_notes(*_fewest_processes(pairs)),
            *_notes(base, new, machines if allow_different_machines else ()),
        ),
    )


def processes_of(record: StrategyRecord) -> int:
    """How many processes the samples come from."""
    return len({sample.process for sample in record.samples})


def _refuse_other_workload(base: RunRecord, new: RunRecord) -> None:
    differences = _differences(
        {"device": base.backend, **base.workload}, {"device": new.backend, **new.workload}
    )
    if differences:
        raise UsageError(
            f"the runs are of different workloads: {', '.join(map(str, differences))}",
            "compare runs of one workload on one device",
        )


def _differences(base: Mapping[str, object], new: Mapping[str, object]) -> list[Difference]:
    return [
        Difference(field, base.get(field), new.get(field))
        for field in dict.fromkeys([*base, *new])
        if base.get(field) != new.get(field)
    ]


def _surroundings(record: RunRecord) -> dict[str, object]:
    """The machine, and the array library; NumPy's version is the machine's already."""
    library = {} if record.library.startswith("NumPy ") else {"library": record.library}
    return {**asdict(record.machine), **library}


def _pairs(base: RunRecord, new: RunRecord) -> list[_Pair]:
    """The strategies that both have, in the order of `new`."""
    by_name = {strategy.strategy: strategy for strategy in base.strategies}
    pairs = [(by_name[s.strategy], s) for s in new.strategies if s.strategy in by_name]
    if not pairs:
        raise UsageError(
            f"no strategy is in both runs: the base has {', '.join(by_name) or 'none'}, the other "
            f"{', '.join(s.strategy for s in new.strategies) or 'none'}",
            "run both with the same --strategy",
        )
    return pairs


def _fewest_processes(pairs: Sequence[_Pair]) -> tuple[int, int]:
    """Of the base and of the new run: the least that a strategy's samples come from."""
    return min(processes_of(base) for base, _ in pairs), min(processes_of(new) for _, new in pairs)


def _process_caps(base: int, new: int) -> list[str]:
    if min(base, new) >= FEWEST_PROCESSES:
        return []
    return [
        f"the base has samples of {_processes(base)}, the new run of {_processes(new)}, and times "
        f"differ from process to process; make both with `{_ADVICE}`"
    ]


def _process_notes(base: int, new: int) -> list[str]:
    if not FEWEST_PROCESSES <= min(base, new) < ENOUGH_PROCESSES:
        return []
    return [
        f"samples of {_processes(min(base, new))} say little about how processes differ: a "
        f"difference may be theirs; `{_ADVICE}` is safer"
    ]


def _processes(count: int) -> str:
    return f"{count} process{'' if count == 1 else 'es'}"


_ADVICE = f"ckpt run --processes {ENOUGH_PROCESSES}"


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
    base: StrategyRecord,
    new: StrategyRecord,
    threshold: float,
    comparisons: int,
    caps: Sequence[str],
    same_seed: bool,
) -> StrategyComparison:
    ratios = _ratios(base, new, threshold, comparisons)
    if caps:
        ratios = {phase: replace(ratio, verdict="unclear") for phase, ratio in ratios.items()}
    same = base.outcome.grad_sha256 == new.outcome.grad_sha256
    return StrategyComparison(
        strategy=new.strategy,
        base=base,
        new=new,
        ratios=ratios or None,
        saved_bytes=Change(base.memory.saved_bytes, new.memory.saved_bytes),
        peak_bytes=Change(base.memory.ledger_peak_bytes, new.memory.ledger_peak_bytes),
        recomputed_nodes=Change(base.outcome.recomputed_nodes, new.outcome.recomputed_nodes),
        gradients_identical=same if same_seed else None,
    )


def _ratios(
    base: StrategyRecord, new: StrategyRecord, threshold: float, comparisons: int
) -> dict[str, Ratio]:
    if not (base.samples and new.samples):
        return {}
    return {
        phase: unpaired_ratio(
            _by_process(new, phase),
            _by_process(base, phase),
            seed=_seed(base, new),
            threshold=threshold,
            comparisons=comparisons,
        )
        for phase in PHASES
    }


def _by_process(record: StrategyRecord, phase: str) -> list[list[float]]:
    """The samples of a phase, a list a process."""
    groups: dict[int, list[float]] = {}
    for sample, time_s in zip(record.samples, record.seconds(phase)):
        if time_s <= 0.0:
            raise UsageError(
                f"strategy `{record.strategy}` has a {phase} sample of {time_s:g} s",
                "no ratio can be taken of it; measure again",
            )
        groups.setdefault(sample.process, []).append(time_s)
    return list(groups.values())


def _seed(base: StrategyRecord, new: StrategyRecord) -> int:
    """A number that only the samples of both decide."""
    samples = [[asdict(sample) for sample in record.samples] for record in (base, new)]
    digest = hashlib.sha256(json.dumps(samples, sort_keys=True).encode())
    return int.from_bytes(digest.digest()[:8], "big")
