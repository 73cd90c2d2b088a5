"""The comparison of strategies as text: the cells of one table and a few sentences for each.

Markdown and HTML show the same cells; neither formats a figure itself.
"""

from __future__ import annotations

import shlex
from dataclasses import dataclass

from ckptcli import units
from ckptcli.measure.peer_record import PeerRecord
from ckptcli.measure.record import PHASES, Memory, RunRecord, StrategyRecord
from ckptcli.measure.statistics import Ratio
from ckptcli.options.commands.run import RunOptions
from ckptcli.options.effects import Subject, takes
from ckptcli.options.listing import options_of
from ckptcli.options.subjects import MODULE, WORKLOAD
from ckptcli.options.words import reproduction_words

HEADER = (
    "strategy",
    "saved",
    "peak",
    "recomputed",
    "forward",
    "backward",
    "total",
    "vs reference",
    "time",
    "verdict",
)

EXPLANATION = (
    "Saved: what the forward pass holds for the backward pass. Peak: the most that was live at "
    "once, parameters and input included, and temporaries inside kernels where they are known. "
    "Recomputed: nodes computed a "
    "second time, and their share of the forward's floating-point operations and of the bytes that "
    "it moves. Times: medians with exact 95 % intervals."
)


@dataclass(frozen=True, slots=True)
class Cell:
    """A figure, and what is said of it in small print."""

    text: str
    detail: str = ""

    @property
    def whole(self) -> str:
        """Both on one line."""
        comma = "" if self.detail.startswith("[") else ","
        return f"{self.text}{comma} {self.detail}" if self.detail else self.text


def rows(record: RunRecord) -> list[tuple[Cell, ...]]:
    """For each strategy, then each peer, a cell for each column of `HEADER`."""
    own = [_row(strategy, record) for strategy in record.strategies]
    return own + [_peer_row(peer) for peer in record.peers]


def _peer_row(peer: PeerRecord) -> tuple[Cell, ...]:
    memory = peer.memory
    if memory is None:
        return (Cell(peer.name), *[Cell(units.UNKNOWN)] * (len(HEADER) - 1))
    return (
        Cell(peer.name),
        Cell(units.size(memory.saved_bytes), _count(memory.saved_tensors, "tensor")),
        Cell(units.size(memory.peak_bytes)),
        Cell(peer_recomputes(peer)),
        *(_split(peer_time_text(peer, phase)) for phase in PHASES),
        _split(ratio_interval(peer.ratio)),
        Cell(units.UNKNOWN if peer.ratio is None else peer.ratio.verdict),
        Cell(agreement_word(peer)),
    )


def peer_recomputes(peer: PeerRecord) -> str:
    """How many products and sigmoids are computed again, `6 matmul, 6 sigmoid`."""
    if peer.recomputed_by_op is None:
        return units.UNKNOWN
    return ", ".join(f"{n} {op}" for op, n in peer.recomputed_by_op.items()) or "nothing"


def peer_time_text(peer: PeerRecord, phase: str) -> str:
    """A median with its interval, or `n/a`."""
    known = None if peer.times is None else peer.times.get(phase)
    return units.UNKNOWN if known is None else units.interval(known.median, known.low, known.high)


def agreement_word(peer: PeerRecord) -> str:
    """Whether loss and gradients are ckpt's within the tolerance."""
    if peer.agreement is None:
        return units.UNKNOWN
    return "agrees" if peer.agreement.agrees else "differs"


def peer_sentences(peer: PeerRecord) -> list[str]:
    """What a peer's figures say beside those of the table."""
    known, memory = peer.agreement, peer.memory
    if peer.reason is not None or known is None or memory is None:
        return [f"{units.UNKNOWN}: {peer.reason}"]
    sentences = [
        f"loss within {known.loss_relative:.2g} ({known.loss_ulp:.3g} ulp) of ckpt's, gradients "
        f"within {known.gradient_relative:.2g} ({known.gradient_ulp:.3g} ulp): "
        f"{agreement_word(peer)}, tolerance {known.tolerance:g}"
    ]
    if peer.own_ratio is not None:
        word = peer.own_ratio.verdict
        sentences.append(
            f"takes {ratio_interval(peer.own_ratio)} the time of ckpt's {peer.strategy}: {word}"
        )
    if peer.compile_s is not None:
        planned = units.size(memory.compiled_temp_bytes)
        sentences.append(
            f"compiled in {units.duration(peer.compile_s)}, in no time above; the compiler planned "
            f"{planned} of temporaries for the whole program"
        )
    return sentences


def peer_title(peer: PeerRecord) -> str:
    """The peer, its library and its threads."""
    threads = "" if peer.threads is None else f", {_count(peer.threads, 'thread')}"
    return f"{peer.name} ({peer.library}{threads})"


def _row(record: StrategyRecord, run: RunRecord) -> tuple[Cell, ...]:
    memory = record.memory
    reference = record is run.reference
    return (
        Cell(record.strategy),
        Cell(units.size(memory.saved_bytes), _count(memory.saved_tensors, "tensor")),
        _peak(memory),
        _recomputed(record),
        *(_split(time_text(record, phase)) for phase in PHASES),
        Cell("1.00x") if reference else _split(ratio_text(record)),
        Cell("reference" if reference else _verdict(record)),
        Cell("reference" if reference else _judgement(record)),
    )


def _count(count: int, noun: str) -> str:
    return f"{count} {noun}{'' if count == 1 else 's'}"


def _peak(memory: Memory) -> Cell:
    counted, whole = units.size(memory.ledger_peak_bytes), units.size(memory.peak_bytes)
    return Cell(counted, "" if whole == counted else f"with temporaries {whole}")


def _recomputed(record: StrategyRecord) -> Cell:
    count, cost = record.outcome.recomputed_nodes, record.cost
    shares = f"{cost.flops_share:.1%} of operations, {cost.moved_bytes_share:.0%} of bytes"
    return Cell(str(count), shares if count else "")


def _split(text: str) -> Cell:
    """The interval in small print."""
    middle, bracket, rest = text.partition(" [")
    return Cell(middle, f"[{rest}" if bracket else "")


def time_text(record: StrategyRecord, phase: str) -> str:
    """A median with its interval, or `n/a`."""
    if record.times is None:
        return units.UNKNOWN
    known = record.times[phase]
    return units.interval(known.median, known.low, known.high)


def ratio_text(record: StrategyRecord) -> str:
    """The ratio of the total times with its interval, or range under six rounds; or `n/a`."""
    return ratio_interval(None if record.ratios is None else record.ratios["total"])


def ratio_interval(ratio: Ratio | None) -> str:
    """A ratio with its interval, or range under six rounds; or `n/a`."""
    if ratio is None:
        return units.UNKNOWN
    kind = "" if ratio.exact else ", range"
    return f"{units.ratio(ratio.median)} [{ratio.low:.3f} {ratio.high:.3f}{kind}]"


def _verdict(record: StrategyRecord) -> str:
    return units.UNKNOWN if record.ratios is None else record.ratios["total"].verdict


def _judgement(record: StrategyRecord) -> str:
    return units.UNKNOWN if record.judgement is None else record.judgement.word


def reason(record: StrategyRecord, run: RunRecord) -> str:
    """Why the strategy got its verdict."""
    if record is run.reference:
        return "what the others are compared with"
    return "not compared" if record.judgement is None else record.judgement.reason


def recomputes(record: StrategyRecord) -> str:
    """What is computed again, by op."""
    by_op = record.outcome.recomputed_by_op
    return f"recomputes {', '.join(f'{n} {op}' for op, n in by_op.items()) or 'nothing'}"


def gradients(record: StrategyRecord, run: RunRecord) -> str:
    """Whether the gradients are those of the reference, bit for bit."""
    if run.reference is None or record is run.reference:
        return ""
    return f"gradients {gradients_word(record, run.reference)}"


def gradients_word(record: StrategyRecord, reference: StrategyRecord) -> str:
    """How the gradients compare with the reference's."""
    if record.outcome.grad_sha256 == reference.outcome.grad_sha256:
        return "identical"
    return "within run-to-run spread" if record.outcome.grad_within_spread else "DIFFER"


def summary_line(record: RunRecord) -> str:
    """How the times came about."""
    partial = "; partial: the run ended early" if record.partial else ""
    processes = f" over {record.processes} processes" if record.processes > 1 else ""
    return (
        f"{record.backend}, seed {record.seed}, {record.rounds} rounds interleaved{processes}, "
        f"stopped: {record.stopped}{partial}"
    )


def machine_facts(record: RunRecord) -> list[tuple[str, str]]:
    """What is known of the machine, named."""
    machine = record.machine
    variables = machine.openblas_variables.items()
    return [
        ("processor", _known(machine.cpu)),
        ("cores", _known(machine.cores)),
        ("memory", units.size(machine.memory_bytes)),
        ("system", machine.os),
        ("Python", machine.python),
        ("NumPy", machine.numpy),
        *_other_library(record),
        ("BLAS", _known(machine.blas)),
        ("BLAS threads", _known(machine.blas_threads)),
        ("OPENBLAS variables", ", ".join(f"{k}={v}" for k, v in variables) or "none"),
        ("ckpt", record.version),
    ]


def _other_library(record: RunRecord) -> list[tuple[str, str]]:
    """The array library that computed, where it is not NumPy."""
    title, _, version = record.library.rpartition(" ")
    return [(title, version)] if title not in ("", "NumPy") else []


def machine_line(record: RunRecord) -> str:
    """The machine in one line."""
    facts = dict(machine_facts(record))
    others = "".join(f", {title} {version}" for title, version in _other_library(record))
    return (
        f"{facts['processor']}, {facts['cores']} cores, {facts['memory']}; Python "
        f"{facts['Python']}, NumPy {facts['NumPy']}{others}, BLAS {facts['BLAS']}, "
        f"{units.threads(record.machine.blas_threads)}; ckpt {facts['ckpt']}"
    )


def _known(value: object) -> str:
    return units.UNKNOWN if value is None else str(value)


def command_line(record: RunRecord, reps: int | None = None) -> str | None:
    """The command that measures the same again, as often as before or `reps` times.

    None where the record does not say how.
    """
    workload = record.config.get("workload_text", record.workload.get("name"))
    if not isinstance(workload, str) or workload == "graph":
        return None
    from_file = ":" in workload  # which says the rest, but for what the command was given
    options = options_of(RunOptions)
    settings = {name: value for name, value in record.config.items() if value is not None}
    values = {
        option.name: settings[option.name]
        for option in options
        if option.name in settings and not option.by_workload
    }
    sizes = {
        option.name: record.workload[option.name]
        for option in options
        if option.by_workload and option.name in record.workload
        if not from_file or settings.get(option.name) == record.workload[option.name]
    }
    measured = {
        "strategy_texts": [strategy.strategy for strategy in record.strategies],
        "engine_names": list(dict.fromkeys(peer.engine for peer in record.peers)),
        "workload_text": workload,
        "seed": record.seed,
        "reps": reps or max(1, record.rounds),
    }
    subject = Subject(WORKLOAD, record.title, frozenset(sizes))
    if "module_text" in settings:
        subject = Subject(MODULE, record.title)
    named = [option for option in options if takes(subject, option)]
    words = reproduction_words(named, {**values, **sizes, **measured})
    return shlex.join(["ckpt", "run", *words])
