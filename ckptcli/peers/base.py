"""What a peer is: an engine that runs the silu network natively, and the network in its hands.

An engine registers itself; adding one is adding its file.
"""

from __future__ import annotations

import importlib
import importlib.util
import pkgutil
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol, TypeVar

import ckptcli.peers as package
from ckptcli.checkpoint.strategies.base import LayerRegion, Strategy
from ckptcli.errors import MissingLibraryError, UnknownNameError
from ckptcli.measure.peer_record import PeerMemory
from ckptcli.measure.rounds import Subject

OURS = "ckpt"


class NoPeer(Exception):
    """What was asked has no counterpart in the library; the text says why."""


@dataclass(frozen=True, slots=True)
class Arrays:
    """The network on the host: weights of n x n, the input of batch x n, all of one dtype."""

    weights: Sequence[Any]
    x: Any


@dataclass(frozen=True, slots=True)
class Values:
    """What a pass computed: the loss, and the gradient of each weight as an array on the host."""

    loss: float
    gradients: Sequence[Any]


@dataclass(frozen=True, slots=True)
class Measured:
    """What one untimed pass found out, or the traced program says."""

    memory: PeerMemory
    recomputed_by_op: dict[str, int] | None
    compile_s: float | None


class PeerNetwork(Subject, Protocol):
    """The network under one strategy in one library; `backward` returns the pass's result.

    Attributes:
        splits: whether forward and backward are two programs, so that each has a time.
    """

    splits: bool

    def measure(self) -> Measured:
        """One untimed pass, watched."""

    def values(self, result: Any) -> Values:
        """Loss and gradients of what `backward` returned."""


class Engine(Protocol):
    """A library that runs the network.

    Attributes:
        name: what `--engine` calls it.
        summary: one line for help and docs.
        library: the module to import.
        extra: the extra of ckptcli that installs it.
    """

    name: ClassVar[str]
    summary: ClassVar[str]
    library: ClassVar[str]
    extra: ClassVar[str]

    @property
    def version(self) -> str:
        """Name and version of the library, for people."""

    @property
    def threads(self) -> int | None:
        """How many threads it computes with; None if it does not tell."""

    def with_threads(self, count: int | None) -> AbstractContextManager[str | None]:
        """Inside, compute with `count` threads, None as they are. Yields a warning or None."""

    def network(self, arrays: Arrays, regions: Sequence[LayerRegion]) -> PeerNetwork:
        """The network whose layers are grouped into `regions`.

        Raises:
            NoPeer: a policy that the library has no counterpart for.
        """


_REGISTRY: dict[str, type[Engine]] = {}

EngineClass = TypeVar("EngineClass", bound=type[Engine])


def register(engine: EngineClass) -> EngineClass:
    """Class decorator: makes the engine known under its `name`."""
    _REGISTRY[engine.name] = engine
    return engine


def engines() -> dict[str, type[Engine]]:
    """Every engine by name. No library is imported."""
    for module in pkgutil.iter_modules(package.__path__):
        if module.name.endswith("_engine"):
            importlib.import_module(f"{package.__name__}.{module.name}")
    return dict(sorted(_REGISTRY.items(), key=lambda item: item[0]))


def open_engines(names: Sequence[str]) -> list[Engine]:
    """The engines by name, each once, ckpt's own left out; their libraries are imported.

    Raises:
        UnknownNameError: no engine has one of the names.
        MissingLibraryError: the library of one is not installed, or cannot be imported.
    """
    known = engines()
    chosen = []
    for name in dict.fromkeys(names):
        if name == OURS:
            continue
        if name not in known:
            raise UnknownNameError("engine", name, [OURS, *known])
        load_library(known[name])
        chosen.append(known[name]())
    return chosen


def load_library(engine: type[Engine]) -> None:
    """Import the library of an engine.

    Raises:
        MissingLibraryError: it is not installed, or cannot be imported.
    """
    try:
        importlib.import_module(engine.library)
    except MemoryError:
        raise
    except Exception as error:  # a broken installation fails in its own ways
        why = str(error).strip() or repr(error)
        raise MissingLibraryError(
            f"engine `{engine.name}` needs {engine.library}, which cannot be imported: {why}",
            f"pip install 'ckptcli[{engine.extra}]'",
        ) from error


def regions_of(strategy: Strategy, count: int) -> Sequence[LayerRegion]:
    """How a strategy groups `count` layers; one plain group where it holds everything.

    Raises:
        NoPeer: a strategy that decides op by op, as the libraries never do.
    """
    regions = strategy.layer_regions(count)
    if regions is not None:
        return regions
    if type(strategy).recomputes is Strategy.recomputes:
        return [LayerRegion(count, None)]
    raise NoPeer("it decides op by op what to hold, the library only by regions")
