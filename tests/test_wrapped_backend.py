"""A backend around another is that backend in all that it does not say itself."""

from __future__ import annotations

import inspect
from typing import Any

import pytest

from ckptcli.backends.base import Backend
from ckptcli.backends.ledger import Ledger, TrackedBackend
from ckptcli.backends.registry import open_backend
from ckptcli.replay.call_recorder import CallBackend, CallRecorder
from ckptcli.simulation.account import Account
from ckptcli.simulation.recording_backend import RecordingBackend

OWN = {"asarray", "namespace"}
"""What a wrapper is for."""
DERIVED = {"checked_dtype"}
"""Made from the other attributes."""
CALLS = sorted(
    name
    for name, of in vars(Backend).items()
    if inspect.isfunction(of) and not name.startswith("_") and name not in OWN | DERIVED
)
FACTS = sorted(set(Backend.__annotations__) - OWN)


class Inner:
    """Answers each call, and each question for a fact, with the name; keeps what it was asked."""

    def __init__(self) -> None:
        self.namespace = open_backend("numpy").namespace
        self.asked: list[tuple[Any, ...]] = []

    def __getattr__(self, name: str) -> Any:
        def answer(*arguments: Any) -> str:
            self.asked.append((name, *arguments))
            return f"the inner {name}"

        return answer if name in CALLS else f"the inner {name}"


def wrapped(inner: Any) -> list[Backend]:
    return [
        TrackedBackend(inner, Ledger()),
        RecordingBackend(inner, Account(inner.namespace)),
        CallBackend(inner, CallRecorder(inner.namespace)),
    ]


@pytest.mark.parametrize("name", FACTS)
def test_a_fact_is_the_inner_backends(name: str) -> None:
    facts = [getattr(backend, name) for backend in wrapped(Inner())]
    assert facts == [f"the inner {name}"] * 3


@pytest.mark.parametrize("name", CALLS)
def test_a_call_is_the_inner_backends(name: str) -> None:
    function = getattr(Backend, name)
    arguments = range(len(inspect.signature(function).parameters) - 1)
    expected = None if function.__annotations__["return"] == "None" else f"the inner {name}"
    inner = Inner()
    answers = [getattr(backend, name)(*arguments) for backend in wrapped(inner)]
    assert answers == [expected] * 3
    assert inner.asked == [(name, *arguments)] * 3
