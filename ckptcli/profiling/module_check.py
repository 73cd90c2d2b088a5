"""A PyTorch module of the user's own checked: gradients, recomputed values, state that moves.

Invariant: a strategy passes only if every value that its checkpoints compute again has the bits of
the forward pass, and every gradient those of `none`, or is no further off than sums in another
order are. Gradients are taken in a pass that nothing watches.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from ckptcli.checkpoint.user_code import running
from ckptcli.errors import OutputError, ProgramError
from ckptcli.measure.module_check import Moved, Place
from ckptcli.measure.row import Agreement
from ckptcli.peers.agreement import TOLERANCES, agreement, share_apart
from ckptcli.peers.base import Engine, Values
from ckptcli.peers.module_request import ModuleRequest
from ckptcli.peers.module_strategies import NONE, OWN, ModuleStrategy, module_strategies
from ckptcli.peers.torch_loading import load_module
from ckptcli.peers.torch_module import SMALLER, ModuleNetwork
from ckptcli.peers.torch_recheck import Differing, Recorder
from ckptcli.peers.torch_trial import restore_buffers, tried, why_not_again
from ckptcli.profiling.module_profile import opened
from ckptcli.verify.bits import Difference, farthest_difference, first_difference

DEFAULT = "remat"


@dataclass(frozen=True, slots=True)
class WrongGradient:
    """A parameter whose gradient has other bits than that of `none`.

    Attributes:
        parameter: its path.
        block: the block that it is in; "" where it is in none.
        first, worst: the first element that differs, and the one that moved most.
        relative: the largest distance, as a share of the largest element.
    """

    parameter: str
    block: str
    first: Difference
    worst: Difference
    relative: float


@dataclass(frozen=True, slots=True)
class WrongValue:
    """A value that was computed again otherwise.

    Attributes:
        place: where its op is.
        output: the how manieth of what the op gives, from 0.
        difference: the first element that differs; None where a second pass did not show it.
    """

    place: Place
    output: int
    difference: Difference | None


@dataclass(frozen=True, slots=True)
class ModuleCheck:
    """One strategy.

    Attributes:
        reason: why there is nothing to check; None if there is.
        failed: whether that is since the module fails under it.
        counterpart: what runs, where the name does not say it.
        gradients: how many parameters' gradients were compared.
        wrong_gradients: those with other bits, in the order of the parameters.
        agreement: loss and gradients beside `none`'s.
        spread: how far two passes of `none` lie apart; None where they are the same.
        not_finite: the parameters whose gradient holds nan or infinity.
        checkpoints: how many checkpoints the pass made.
        compared: how many values that were computed again were held against the forward pass's.
        wrong_values: those with other bits, in the order of the forward pass.
        other_ops: ops of recomputations that the forward did not have.
        draws: ops inside checkpoints that draw from a generator of the user's.
        state: what moves.
    """

    strategy: str
    reason: str | None = None
    failed: bool = False
    counterpart: str = ""
    gradients: int = 0
    wrong_gradients: Sequence[WrongGradient] = ()
    agreement: Agreement | None = None
    spread: float | None = None
    not_finite: Sequence[str] = ()
    checkpoints: int = 0
    compared: int = 0
    wrong_values: Sequence[WrongValue] = ()
    other_ops: Sequence[Place] = ()
    draws: Sequence[Place] = ()
    state: Sequence[Moved] = field(default_factory=tuple)

    @property
    def worst_gradient(self) -> WrongGradient | None:
        """The one that lies farthest from that of `none`."""
        return max(self.wrong_gradients, key=lambda wrong: wrong.relative, default=None)

    @property
    def wrong_blocks(self) -> list[Sequence[str]]:
        """The blocks with a value that came back otherwise."""
        return list(dict.fromkeys(tuple(wrong.place.block) for wrong in self.wrong_values))

    @property
    def passed(self) -> bool | None:
        """Whether nothing speaks against the strategy; None where nothing was checked."""
        if self.agreement is None:
            return None
        return self.agreement.agrees and not self.wrong_values


class CheckedModule:
    """A module that is loaded and tried, and its checks.

    Raises:
        UsageError: no module with an input on the CPU, or no block that is called so.
        ProgramError: the module fails, or does something else each time.
    """

    def __init__(self, request: ModuleRequest, seed: int, engine: Engine) -> None:
        self.user = load_module(replace(request, accumulate=1), seed)
        self._trial = tried(self.user, seed, request.blocks)
        self._seed, self._engine = seed, engine
        self.notes = list(self._trial.notes())

    @property
    def title(self) -> str:
        """The module in words."""
        return self.user.title

    def strategies(self, texts: Sequence[str]) -> list[ModuleStrategy]:
        """Those that are named; `remat`, and the module as it is where it checkpoints itself.

        Raises:
            UnknownNameError, UsageError: as where they are read.
        """
        default = [OWN, DEFAULT] if self._trial.own_checkpoints else [DEFAULT]
        named = list(texts) or default
        read = module_strategies(named)
        return read if NONE in named else read[1:]

    def checks(self, strategies: Sequence[ModuleStrategy]) -> Iterator[ModuleCheck]:
        """Each strategy checked.

        Raises:
            ProgramError: the module fails without checkpoints.
        """
        plain = ModuleNetwork(self.user, self._seed)
        with running(self.user.text, SMALLER):
            with _keeping_buffers(plain):
                expected = plain.values(plain.backward(plain.forward()))
            with _keeping_buffers(plain):
                again = plain.values(plain.backward(plain.forward()))
        spread = share_apart(expected, again) or None
        for strategy in strategies:
            yield self._checked(strategy, expected, spread)

    def _checked(
        self, strategy: ModuleStrategy, expected: Values, spread: float | None
    ) -> ModuleCheck:
        this = opened(strategy, self.user, self._trial, self._engine, self._seed)
        network = this.network
        if network is None:
            return ModuleCheck(strategy.name, this.row.reason)
        try:
            with running(self.user.text, SMALLER):
                with _keeping_buffers(network):
                    found = network.values(network.backward(network.forward()))
                seen = self._watched(network, set())
                firsts = {_where(first) for first in _firsts(seen.differing)}
                kept = self._watched(network, firsts) if firsts else seen
        except (ProgramError, OutputError) as error:
            return ModuleCheck(strategy.name, why_not_again(error, self.user), failed=True)
        names = self.user.parameter_names()
        return ModuleCheck(
            strategy.name,
            counterpart=this.row.counterpart or "",
            gradients=len(names),
            wrong_gradients=tuple(self._wrong(names, expected, found)),
            agreement=agreement(
                expected,
                found,
                network.dtype,
                TOLERANCES[network.dtype],
                f"{self._engine.name} {NONE}",
            ),
            spread=spread,
            not_finite=[n for n, g in zip(names, found.gradients) if not np.isfinite(g).all()],
            checkpoints=len(seen.regions),
            compared=seen.compared,
            wrong_values=tuple(_wrong_values(seen.differing, kept.differing)),
            other_ops=tuple(seen.others),
            draws=tuple(seen.draws),
            state=tuple(seen.moved.values()),
        )

    def _watched(self, network: ModuleNetwork, wanted: set[tuple[int, int]]) -> Recorder:
        recorder = Recorder(network.user.make, wanted)
        with _keeping_buffers(network), recorder.watching(network.user.module):
            network.backward(network.forward())
        return recorder

    def _wrong(
        self, names: Sequence[str], expected: Values, found: Values
    ) -> Iterator[WrongGradient]:
        paths = sorted(self._trial.blocks.paths, key=len)
        for name, own, other in zip(names, expected.gradients, found.gradients):
            first = first_difference(own, other)
            if first is None:
                continue
            block = next((path for path in paths[::-1] if name.startswith(f"{path}.")), "")
            alone = share_apart(Values(0.0, [own]), Values(0.0, [other]))
            yield WrongGradient(name, block, first, farthest_difference(own, other), alone)


@contextmanager
def _keeping_buffers(network: ModuleNetwork) -> Iterator[None]:
    """Afterwards the buffers are what they were: each pass starts from the same."""
    module = network.user.module
    before = {name: buffer.clone() for name, buffer in module.named_buffers()}
    try:
        yield
    finally:
        restore_buffers(module, before)


def _where(differing: Differing) -> tuple[int, int]:
    return differing.place.checkpoint, differing.place.index


def _in_order(differing: Sequence[Differing]) -> list[Differing]:
    return sorted(differing, key=_where)


def _firsts(differing: Sequence[Differing]) -> list[Differing]:
    """The first of each checkpoint."""
    firsts: dict[int, Differing] = {}
    for each in _in_order(differing):
        firsts.setdefault(each.place.checkpoint, each)
    return list(firsts.values())


def _wrong_values(
    differing: Sequence[Differing], kept: Sequence[Differing]
) -> Iterator[WrongValue]:
    """In the order of the forward pass; those with their elements that a second pass kept."""
    pairs: dict[tuple[int, int, int], Any] = {
        (*_where(each), each.output): each.pair for each in kept if each.pair is not None
    }
    for each in _in_order(differing):
        pair = pairs.get((*_where(each), each.output))
        difference = None if pair is None else first_difference(*pair)
        yield WrongValue(each.place, each.output, difference)
