"""One pass of a PyTorch module in an account: forward, backward and the optimizer's step.

Invariant: what is live before and after a phase sums to what the ledger has in use there.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import torch

from ckptcli.measure.memory import Memory, PhaseMemory
from ckptcli.peers.torch_account import FORWARD, Account
from ckptcli.peers.torch_holders import HolderAccount
from ckptcli.peers.torch_ledger import counted
from ckptcli.peers.torch_module import ModuleNetwork


def account_pass(account: Account, network: ModuleNetwork) -> Memory:
    """What one pass of a module takes, in an account that is open; its optimizer's step is undone
    afterwards.
    """
    return _Counted(account, network).memory()


class _Counted:
    """A pass under an account that is open, with the ticks at which its phases end."""

    def __init__(self, account: Account, network: ModuleNetwork) -> None:
        self._account, self._network = account, network
        self._forward_ends: list[int] = []

    def memory(self) -> Memory:
        account, network, user = self._account, self._network, self._network.user
        optimizer = user.optimizer
        account.enter((parameter for _, parameter in user.named_parameters()), "parameter")
        account.enter([] if optimizer is None else optimizer.state(), "optimizer")
        account.enter(user.buffers(), "buffer")
        account.enter(user.input_tensors(), "input")
        begin, known = account.tick, account.bytes_by_why(account.tick)
        watched = counted(
            account,
            self._forward,
            self._backward,
            user.own_tensors(),
            network.micro_batches,
            None if optimizer is None else self._step,
        ).memory
        held_bytes = known.get("optimizer", 0)
        assert watched.params_input_bytes is not None
        memory = replace(
            watched,
            params_input_bytes=watched.params_input_bytes - held_bytes,
            optimizer_bytes=None if optimizer is None else held_bytes,
        )
        found = replace(memory, phases=tuple(self._phases(memory, begin)))
        if optimizer is not None:
            network.put_back()
        return found

    def _forward(self) -> torch.Tensor:
        with self._account.backward_is(FORWARD):
            loss = self._network.forward()
        self._account.are([loss], "output")
        self._account.end_forward()
        if isinstance(self._account, HolderAccount):
            self._account.root = loss.grad_fn
        self._forward_ends.append(self._account.tick)
        return loss

    def _backward(self, loss: torch.Tensor) -> Any:
        result = self._network.backward(loss)
        parameters = self._network.user.parameters()
        self._account.are(result[1][: len(parameters)], "gradient of a parameter")
        self._backward_end = self._account.tick
        return result

    def _step(self, result: Any) -> None:
        with self._account.stepping():
            self._network.step(result)
        self._step_end = self._account.tick

    def _phases(self, memory: Memory, begin: int) -> Iterator[PhaseMemory]:
        first, last, end = self._forward_ends[0], self._forward_ends[-1], self._backward_end
        yield self._phase("forward", begin, last, memory.ledger_peak_forward_bytes)
        yield self._phase("backward", first, end, memory.ledger_peak_backward_bytes)
        if memory.ledger_peak_step_bytes is not None:
            yield self._phase("step", end, self._step_end, memory.ledger_peak_step_bytes)

    def _phase(self, name: str, begin: int, end: int, peak_bytes: int | None) -> PhaseMemory:
        before, after = self._account.bytes_by_why(begin), self._account.bytes_by_why(end)
        return PhaseMemory(name, before, after, peak_bytes or 0)
