"""The plan of a program as a policy of JAX: by names, in each layer, as JAX compiles it.

Invariant: figures are of programs that were compiled under the policy that the code names.
"""

from __future__ import annotations

from collections.abc import Sequence

from ckptcli.checkpoint.strategies.registry import parse_strategy
from ckptcli.errors import UsageError
from ckptcli.peers.base import Engine, NoPeer, name_of, regions_of, workloads_of
from ckptcli.planning.tape.choice import Choice
from ckptcli.planning.tape.held_names import Counterpart, held_names
from ckptcli.workloads.base import Workload

NONE, REMAT = "none", "remat"
POLICY = "save_only_these_names"


def counterpart(workload: Workload, choice: Choice, engine: Engine) -> Counterpart | None:
    """What comes closest to the plan in the engine; None where there is no plan.

    Raises:
        UsageError: the engine has no program of the workload, or nothing that is the plan's.
    """
    if choice.tape is None:
        return None
    if name_of(workload) not in workloads_of(engine):
        raise UsageError(
            f"--engine {engine.name} has no program of workload `{name_of(workload)}`",
            f"it has {', '.join(workloads_of(engine))}",
        )
    strategy: str
    names: Sequence[str] = ()
    lost: Sequence[str] = ()
    if choice.tape.schedule is None:
        strategy = choice.tape.strategy
    else:
        held = held_names(choice.problem.graph, choice.tape.schedule)
        again, names, lost = choice.tape.schedule.computed, held.names, tuple(held.lost())
        strategy = _strategy(names) if again else NONE
    try:
        own, plain = (_measured(workload, engine, name) for name in (strategy, NONE))
    except NoPeer as reason:
        raise UsageError(
            f"the plan is nothing in {engine.name}: {reason}", "leave out --engine"
        ) from reason
    return Counterpart(strategy, _code(strategy, names), *own, *plain, lost)


def _strategy(names: Sequence[str]) -> str:
    return f"{REMAT}:policy={POLICY}({','.join(names)})" if names else REMAT


def _code(strategy: str, names: Sequence[str]) -> str:
    """Code for layers that are a region each; "" for others."""
    if not strategy.startswith(REMAT) or (strategy != REMAT and not names):
        return ""
    quoted = ", ".join(f'"{name}"' for name in names)
    policy = f", policy=jax.checkpoint_policies.{POLICY}({quoted})" if quoted else ""
    return f"import jax\n\nlayer = jax.checkpoint(layer{policy})\n"


def _measured(workload: Workload, engine: Engine, strategy: str) -> tuple[int, int | None]:
    """Residuals, and the peak above the arguments; bytes."""
    regions = regions_of(parse_strategy(strategy), workload.layer_count)
    measured = engine.network(workload, regions).measure()
    plan = None if measured.compiled is None else measured.compiled.plan
    peak_bytes = None if plan is None else plan.whole_bytes - plan.argument_bytes
    return measured.memory.saved_bytes, peak_bytes
