"""The memory of a PyTorch module with shapes only: of one that is larger than the machine, too.

Invariant: nothing of a large module is allocated. What shapes cannot tell is not known: times,
gradients, what kernels take for themselves.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

from ckptcli.checkpoint.user_code import running
from ckptcli.errors import OutputError, ProgramError
from ckptcli.measure.origin import read_origin
from ckptcli.measure.record import RunRecord
from ckptcli.measure.rounds import Plan, Rounds
from ckptcli.peers.base import Engine
from ckptcli.peers.module_request import ModuleRequest
from ckptcli.peers.module_strategies import OWN, ModuleStrategy
from ckptcli.profiling.fake_ops import Comparison, compared
from ckptcli.profiling.module_profile import ModulePass, lints, opened, with_watched, workload_of
from ckptcli.profiling.own_program import OwnRun, Tell
from ckptcli.profiling.rows import without_figures

if TYPE_CHECKING:
    from ckptcli.peers.torch_fake_ops import Call
    from ckptcli.peers.torch_module import UserModule

SMALL_BYTES = 1 << 28
"""A module whose peak is no higher is run for real once, beside its shapes."""

SHAPES_ONLY = "shapes only"
_STOPPED = f"{SHAPES_ONLY}, nothing to time"
KERNELS = (
    f"{SHAPES_ONLY}: nothing is computed, timed or compared, and ops are those of PyTorch's CPU "
    "kernels; another device may run others, as for attention"
)
_BY_VALUES = "DataDependent", "DynamicOutputShape"


def profile_shapes(
    request: ModuleRequest,
    strategies: Sequence[ModuleStrategy],
    engine: Engine,
    plan: Plan,
    tell: Tell,
    config: dict[str, object] | None = None,
    command: Sequence[str] = (),
    limit_bytes: int | None = None,
) -> RunRecord:
    """The account of a module under strategies, by shapes; `engine` is PyTorch's, and imported.

    Raises:
        UsageError: no module with an input on the CPU.
        ProgramError: the module fails, or decides by values.
        PassOutOfMemory: nothing fits in the limit.
    """
    from ckptcli.peers.torch_fake import shapes_only
    from ckptcli.peers.torch_fake_ops import OpKinds
    from ckptcli.peers.torch_loading import load_module
    from ckptcli.peers.torch_memory import bytes_by_op
    from ckptcli.peers.torch_module import ModuleNetwork
    from ckptcli.peers.torch_trial import tried

    origin = read_origin(command)
    with values_refused(request.text), shapes_only():
        plain = load_module(request, plan.seed)
        trial = tried(plain, plan.seed, request.blocks, has_values=False)
        network = ModuleNetwork(plain, plan.seed)
        with OpKinds() as kinds:
            network.backward(network.forward())
        chosen = [s for s in strategies if s.is_asked or s.name != OWN or trial.own_checkpoints]
        passes = []
        for done, strategy in enumerate(chosen):
            tell("memory", done, len(chosen))
            passes.append(_account(opened(strategy, plain, trial, engine, plan.seed), plain))
        by_op = bytes_by_op(network) if _is_small(passes[0]) else None
    workload = workload_of(plain, trial.blocks)
    run = OwnRun(
        {**workload, "title": f"{plain.title}, {SHAPES_ONLY}"},
        "Torch(Cpu)",
        engine.version,
        plan,
        0.0,
        config or {},
        origin,
        children=trial.blocks.paths,
        limit_bytes=limit_bytes,
    )
    run.hold_to_limit(passes)
    run.notes = [
        KERNELS,
        *(_held_whole(request, plan.seed, by_op) if by_op else _held_by_op(kinds.calls)),
        *trial.notes(),
        *lints(chosen, passes, trial.blocks),
    ]
    return run.record(passes, Rounds({}, 0, _STOPPED), False)


def _account(this: ModulePass, plain: UserModule) -> ModulePass:
    """The row with its memory, or with the reason why there is none."""
    from ckptcli.peers.torch_memory import module_pass
    from ckptcli.peers.torch_module import SMALLER
    from ckptcli.peers.torch_trial import why_not_again

    if this.network is None:
        return this
    try:
        with running(plain.text, SMALLER):
            watched = module_pass(this.network, has_elements=False)
    except (ProgramError, OutputError) as error:
        row = without_figures(this.row, why_not_again(error, plain))
        return ModulePass(replace(row, failed=isinstance(error, ProgramError)))
    return replace(this, row=with_watched(replace(this.row, memory=watched.memory), watched))


def _is_small(this: ModulePass) -> bool:
    """Whether the module can be run for real beside its shapes."""
    memory = this.row.memory
    return memory is not None and (memory.ledger_peak_bytes or 0) <= SMALL_BYTES


def _held_whole(request: ModuleRequest, seed: int, by_shapes: Counter[str]) -> Iterator[str]:
    """How far the account is that of a real run of the whole module, which is small."""
    from ckptcli.peers.torch_loading import load_module
    from ckptcli.peers.torch_memory import bytes_by_op
    from ckptcli.peers.torch_module import ModuleNetwork

    real = bytes_by_op(ModuleNetwork(load_module(request, seed), seed))
    differing = [op for op in {**real, **by_shapes} if real[op] != by_shapes[op]]
    if not differing:
        yield "run for real, every op of the module returns the bytes of its shapes"
    else:
        found = Comparison(0, {op: (real[op], by_shapes[op]) for op in differing})
        yield from found.notes()


def _held_by_op(calls: Sequence[Call]) -> Iterator[str]:
    """The same of the ops that a large module runs."""
    yield from compared(calls).notes()
    yield (
        "a module that takes another path where tensors have no elements is not seen by its ops: "
        "hold a smaller configuration of it against its real run, with --fake too"
    )


@contextmanager
def values_refused(text: str) -> Iterator[None]:
    """Inside, what shapes cannot tell is refused as such.

    Raises:
        ProgramError: the module decides by values; names the line.
    """
    try:
        yield
    except ProgramError as error:
        if not type(error.__cause__).__name__.startswith(_BY_VALUES):
            raise
        raise ProgramError(
            f"`{text}` decides by values, which shapes do not have: {error}",
            "leave out --fake, or have the module decide by shapes",
        ) from error
