"""A PyTorch module of the user's own checked: gradients, recomputed values, state that moves.

Invariant: a strategy passes only if every value that its checkpoints compute again has the bits of
the forward pass, and every gradient those of `none`, or is no further off than sums in another
order are. Gradients are taken in a pass that nothing watches.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np

from ckptcli.checkpoint.user_code import running
from ckptcli.errors import OutputError, ProgramError
from ckptcli.measure.check import Check, WrongGradient
from ckptcli.measure.wrong_values import OpValue
from ckptcli.peers.agreement import agreement, share_apart, wrong_gradient
from ckptcli.peers.base import Engine, Values
from ckptcli.peers.module_request import ModuleRequest
from ckptcli.peers.module_strategies import NONE, OWN, ModuleStrategy, module_strategies
from ckptcli.peers.torch_compiled import UNWATCHED
from ckptcli.peers.torch_loading import load_module
from ckptcli.peers.torch_module import SMALLER, ModuleNetwork
from ckptcli.peers.torch_recheck import Differing, Recorder
from ckptcli.peers.torch_trial import (
    lost_gradients,
    restore_buffers,
    tried,
    why_not_again,
    without_gradient,
)
from ckptcli.profiling.module_profile import opened
from ckptcli.verify.bits import first_difference

DEFAULT = "remat"


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

    def checks(self, strategies: Sequence[ModuleStrategy]) -> Iterator[Check]:
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

    def _checked(self, strategy: ModuleStrategy, expected: Values, spread: float | None) -> Check:
        this = opened(strategy, self.user, self._trial, self._engine, self._seed)
        network = this.network
        if network is None:
            return Check(strategy.name, self._engine.name, this.row.reason)
        if network.is_compiled:
            return Check(strategy.name, self._engine.name, UNWATCHED)
        try:
            with running(self.user.text, SMALLER):
                with _keeping_buffers(network):
                    result = network.backward(network.forward())
                    found = network.values(result)
                seen = self._watched(network, set())
                firsts = {_where(first) for first in _firsts(seen.differing)}
                kept = self._watched(network, firsts) if firsts else seen
        except (ProgramError, OutputError) as error:
            why = why_not_again(error, self.user)
            return Check(strategy.name, self._engine.name, why, failed=True)
        names = self.user.parameter_names()
        return Check(
            strategy.name,
            self._engine.name,
            counterpart=this.row.counterpart or "",
            gradients=len(names),
            by_bits=True,
            gradients_apart=tuple(self._wrong(names, expected, found)),
            plain_agreement=agreement(
                expected,
                found,
                network.dtype,
                network.tolerance,
                f"{self._engine.name} {NONE}",
            ),
            spread=spread,
            not_finite=[n for n, g in zip(names, found.gradients) if not np.isfinite(g).all()],
            checkpoints=len(seen.regions),
            compared=seen.compared,
            same_bits=seen.compared - len(seen.differing),
            wrong_values=tuple(_wrong_values(seen.differing, kept.differing)),
            other_ops=tuple(seen.others),
            own_draws=tuple(seen.draws),
            state=tuple(seen.moved.values()),
            finding=lost_gradients(
                without_gradient(names, result[1]), self._trial.without_gradient
            ),
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
            if first_difference(own, other) is None:
                continue
            block = next((path for path in paths[::-1] if name.startswith(f"{path}.")), "")
            yield wrong_gradient(name, own, other, block)


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


def _wrong_values(differing: Sequence[Differing], kept: Sequence[Differing]) -> Iterator[OpValue]:
    """In the order of the forward pass; those with their elements that a second pass kept."""
    pairs: dict[tuple[int, int, int], Any] = {
        (*_where(each), each.output): each.pair for each in kept if each.pair is not None
    }
    for each in _in_order(differing):
        pair = pairs.get((*_where(each), each.output))
        difference = None if pair is None else first_difference(*pair)
        yield OpValue(each.place, each.output, difference)
