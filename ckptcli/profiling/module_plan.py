"""Which blocks of a PyTorch module to checkpoint so that its peak fits a budget.

Invariant: every peak that a plan names was measured: a pass in the ledger, and one by the
allocator, which has what kernels take.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from ckptcli.checkpoint.user_code import running
from ckptcli.errors import OutputError, ProgramError, UsageError
from ckptcli.options.measuring import THRESHOLD
from ckptcli.peers.base import Engine, NoPeer
from ckptcli.peers.module_request import ModuleRequest
from ckptcli.peers.module_strategies import module_strategies
from ckptcli.planning.blocks.plan import Block, ModulePlan
from ckptcli.planning.blocks.search import Found, Search
from ckptcli.planning.blocks.sets import ALL_SETS_OF, SetPass
from ckptcli.planning.device_limit import DeviceLimit
from ckptcli.planning.snippet import Snippet
from ckptcli.planning.tape.measured import Measured
from ckptcli.profiling.fake_profile import KERNELS, SHAPES_ONLY, values_refused
from ckptcli.profiling.module_profile import profile_module
from ckptcli.profiling.own_program import Tell
from ckptcli.profiling.plan_rounds import plan_rounds

if TYPE_CHECKING:
    from ckptcli.measure.row import Row
    from ckptcli.peers.torch_block_sets import BlockSets
    from ckptcli.peers.torch_module import UserModule
    from ckptcli.peers.torch_trial import Trial
    from ckptcli.planning.problems.base import Number

CHANGED = (
    "its gradients are not those of `none`: a block computes something else when it is computed "
    "again; `ckpt check --module` says where, and what moves"
)


@dataclass(frozen=True, slots=True)
class PlanRequest:
    """What is asked of a module.

    Attributes:
        budget: bytes above parameters, buffers, input and the optimizer's state; None for the
            frontier alone, or for what the device leaves.
        cost_unit: flops, time or count.
        is_fake: whether by shapes alone.
        seed: of the module and of every pass.
        device_bytes: the memory of the device that all has to fit in; None where a budget says.
    """

    module: ModuleRequest
    budget: int | None
    cost_unit: str = "flops"
    is_fake: bool = False
    seed: int = 0
    device_bytes: int | None = None


def plan_module(request: PlanRequest, tell: Tell) -> tuple[ModulePlan, list[str]]:
    """The plan, and what a reader of it has to know; PyTorch is imported.

    Raises:
        UsageError: no module with an input on the CPU, none with blocks, or times of shapes.
        ProgramError: the module fails, or does something else each time.
    """
    from ckptcli.peers.torch_block_sets import BlockSets
    from ckptcli.peers.torch_fake import shapes_only
    from ckptcli.peers.torch_loading import load_module
    from ckptcli.peers.torch_trial import tried

    if request.is_fake and request.cost_unit == "time":
        raise UsageError("--cost time needs times, and --fake has none", "use --cost flops")
    with ExitStack() as stack:
        if request.is_fake:
            stack.enter_context(values_refused(request.module.text))
            stack.enter_context(shapes_only())
        user = load_module(request.module, request.seed)
        trial = tried(user, request.seed, request.module.blocks, has_values=not request.is_fake)
        try:
            sets = BlockSets(user, trial, request.seed, has_values=not request.is_fake)
        except NoPeer as reason:
            raise UsageError(f"`{user.text}` cannot be planned: {reason}") from reason
        made = _Planning(request, user, trial, sets).plan(tell)
    notes = [*([KERNELS] if request.is_fake else []), *trial.notes()]
    if request.module.optimizer and user.step.optimizer is not None:
        notes.append(
            f"--optimizer {request.module.optimizer} has no effect: the step of `{user.text}` has "
            "an optimizer of its own"
        )
    if trial.own_checkpoints:
        notes.append(
            "turn these off where the plan's are made: a checkpoint in another computes twice"
        )
    if made.changes_gradients:
        notes.append(f"{made.strategy}: {CHANGED}")
    return made, notes


class _Planning:
    """A module that was tried, on the way to its plan."""

    def __init__(
        self, request: PlanRequest, user: UserModule, trial: Trial, sets: BlockSets
    ) -> None:
        self._request, self._user, self._trial, self._sets = request, user, trial, sets
        self._flops, self._whole_flops = sets.flops()
        self._times: Sequence[float | None] = [None] * len(sets.regions)
        self._whole_time: float = 0.0
        if not request.is_fake:
            self._times, self._whole_time = sets.seconds()

    def _costs(self) -> tuple[list[Number], Number]:
        """Of each block, and of the whole forward."""
        if self._request.cost_unit == "time":
            return [time or 0.0 for time in self._times], self._whole_time
        if self._request.cost_unit == "count":
            return [1] * len(self._flops), len(self._flops)
        return [*self._flops], self._whole_flops

    def _limit(self) -> DeviceLimit | None:
        """The device with the module on it, as the last pass had it."""
        if self._request.device_bytes is None:
            return None
        state_bytes = self._sets.optimizer_bytes
        return DeviceLimit(
            self._request.device_bytes,
            self._sets.base_bytes - state_bytes,
            "parameters, buffers and input",
            (self._request.module.optimizer or "its optimizer") if state_bytes else "",
            state_bytes,
        )

    def plan(self, tell: Tell) -> ModulePlan:
        costs, whole = self._costs()
        search = Search(self._sets.measured, costs, lambda done, most: tell("memory", done, most))
        none = search.none  # a pass says what is there before it
        limit = self._limit()
        budget = self._request.budget if limit is None else limit.budget_bytes
        found = search.run(budget)
        frontier = search.frontier(found)
        named = {frozenset(p.chosen) for p in (*frontier, found.lowest, *_known(found.best))}
        predicted = found.predicted_bytes
        return ModulePlan(
            title=self._user.title + (f", {SHAPES_ONLY}" if self._request.is_fake else ""),
            budget=budget,
            base_bytes=self._sets.base_bytes,
            cost_unit=self._request.cost_unit,
            whole_cost=whole,
            costs=costs,
            blocks=[self._block(found, block) for block in range(len(costs))],
            none=none,
            best=found.best,
            lowest=found.lowest,
            frontier=frontier,
            strategies={chosen: self._sets.strategy(chosen) for chosen in named},
            passes=len(found.passes),
            thinned=len(found.alone) > ALL_SETS_OF,
            predicted=len(predicted),
            as_predicted=sum(found.passes[s].ledger_bytes == peak for s, peak in predicted.items()),
            snippets=[] if found.best is None else self._snippets(found, found.best),
            is_fake=self._request.is_fake,
            limit=limit,
            keeps_gradients=self._keeps_gradients(found.best),
        )

    def _keeps_gradients(self, best: SetPass | None) -> bool | None:
        if self._request.is_fake or best is None or not best.chosen:
            return None
        return self._sets.keeps_gradients(best.chosen)

    def _block(self, found: Found, block: int) -> Block:
        alone = found.alone.get(block)
        return Block(
            self._sets.regions[block].paths,
            self._flops[block],
            self._times[block],
            found.none.held_of.get(block, 0),
            None if alone is None else found.freed_bytes(block),
            None if alone is None else alone.peak_bytes,
            found.refused.get(block, ""),
        )

    def _snippets(self, found: Found, best: SetPass) -> list[Snippet]:
        """The ways to make the set, each executed: what takes other bytes is left out."""
        from ckptcli.peers.torch_checkpoint_code import snippets, switch_snippet
        from ckptcli.peers.torch_own import framework_call

        written = snippets(self._sets.chosen_regions(best.chosen))
        call = framework_call(self._user.module)
        if best.chosen == frozenset(found.alone) and call is not None:
            written.append(switch_snippet(*call))
        return [snippet for snippet in written if self._takes_the_same(snippet, best)]

    def _takes_the_same(self, snippet: Snippet, best: SetPass) -> bool:
        from ckptcli.peers.torch_block_sets import network_pass
        from ckptcli.peers.torch_loading import another
        from ckptcli.peers.torch_module import SMALLER, ModuleNetwork

        seed = self._request.seed
        user = another(self._user, seed, self._trial.can_share)
        try:
            with running(user.text, SMALLER):
                exec(snippet.code, {"model": user.module})
                memory = network_pass(ModuleNetwork(user, seed, has_own_checkpoints=True))
        except (ProgramError, OutputError):
            return False
        peak_bytes = (memory.ledger_peak_bytes or 0) - self._sets.base_bytes
        return (peak_bytes, memory.saved_bytes) == (best.ledger_bytes, best.held_bytes)


def _known(best: SetPass | None) -> Sequence[SetPass]:
    return () if best is None else (best,)


def measured_plan(request: PlanRequest, plan: ModulePlan, engine: Engine, tell: Tell) -> ModulePlan:
    """The plan with what its set takes beside `none`, in rounds; of no set unchanged. The request
    has values.
    """
    if plan.strategy is None:
        return plan
    strategies = module_strategies([plan.strategy])
    rounds = plan_rounds(seed=request.seed)
    record = profile_module(request.module, strategies, engine, rounds, THRESHOLD, tell)
    return replace(plan, measured=_measured(record.rows[-1], record.rows[0], plan.budget))


def _measured(row: Row, none: Row, budget: int | None) -> Measured:
    memory = row.memory
    assert memory is not None
    base_bytes = (memory.params_input_bytes or 0) + (memory.optimizer_bytes or 0)
    peak_bytes = (memory.peak_bytes or 0) - base_bytes
    agreement = row.agreement
    return Measured(
        peak_bytes=peak_bytes,
        ledger_bytes=(memory.ledger_peak_bytes or 0) - base_bytes,
        time_s=row.median_s("total") or 0.0,
        none_time_s=none.median_s("total"),
        within_budget=budget is None or peak_bytes <= budget,
        gradients_equal=None if agreement is None else agreement.gradient_relative == 0,
    )
