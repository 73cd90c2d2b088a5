"""What a peer is: an engine that runs workloads natively, and a workload in its hands.

An engine registers itself from a file `*_engine.py`, its program of a workload from there or from a
file `*_program.py`; adding one is adding its file.
"""

from __future__ import annotations

import importlib
import importlib.util
import pkgutil
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol, TypeVar

import ckptcli.peers as package
from ckptcli.checkpoint.policies import described
from ckptcli.checkpoint.strategies.base import Elsewhere, LayerRegion, Strategy
from ckptcli.errors import MissingLibraryError, UnknownNameError
from ckptcli.measure import OURS
from ckptcli.measure.compiled import Compiled
from ckptcli.measure.memory import Memory
from ckptcli.measure.subject import Subject
from ckptcli.workloads.base import Workload


class NoPeer(Exception):
    """What was asked has no counterpart in the library; the text says why."""


@dataclass(frozen=True, slots=True)
class Values:
    """What a pass computed: the loss, and each parameter's gradient as an array on the host."""

    loss: float
    gradients: Sequence[Any]


@dataclass(frozen=True, slots=True)
class Measured:
    """What one untimed pass shows, or the library's program says."""

    memory: Memory
    recomputed_by_op: dict[str, int] | None
    compile_s: float | None
    compiled: Compiled | None = None


@dataclass(frozen=True, slots=True)
class Again:
    """A value that the backward pass computed again.

    Attributes:
        layer: the layer that it was made in, from 0.
        name: the name that the workload gives it.
        made: as the forward pass made it, on the host.
        again: as it came back.
    """

    layer: int
    name: str
    made: Any
    again: Any


@dataclass(frozen=True, slots=True)
class Packed:
    """A compiled program with its arguments, to be run once in a process that does nothing else.

    Attributes:
        module: the module of that process; its `main()` reads `payload` from stdin and prints a
            JSON object with the fields of `Compiled` that it measures.
    """

    module: str
    payload: bytes


class TimedNetwork(Subject, Protocol):
    """What is timed beside ckpt's own passes; `backward` returns the pass's result.

    Attributes:
        splits: whether forward and backward are two programs, so that each has a time.
    """

    splits: bool

    def packed(self) -> Packed | None:
        """The compiled program for another process; None where nothing is compiled.

        Raises:
            NoPeer: it cannot be moved to another process.
        """


class PeerNetwork(TimedNetwork, Protocol):
    """The network under one strategy in one library.

    Attributes:
        tolerance: how far loss and gradients may be from ckpt's, as a share of the largest element.
        untold: why nobody sees what values it computes again; empty where `recomputed_values` does.
    """

    tolerance: float
    untold: str

    def measure(self) -> Measured:
        """One untimed pass, watched."""

    def values(self, result: Any) -> Values:
        """Loss and gradients of what `backward` returned."""

    def loss_at(self, parameters: Sequence[Any]) -> float:
        """The loss where the parameters are these arrays on the host."""

    def recomputed_values(self) -> Sequence[Again]:
        """What one pass computed again, value by value; nothing where `untold` says why."""


class Runner(Protocol):
    """What runs the passes of rows beside ckpt's own.

    Attributes:
        name: what records call it.
        waits_for_threads: whether its threads wait for each other at the end of every op.
    """

    name: ClassVar[str]
    waits_for_threads: ClassVar[bool]

    @property
    def version(self) -> str:
        """Name and version of the library, for people."""

    @property
    def threads(self) -> int | None:
        """How many threads it computes with; None if it does not tell."""

    def is_out_of_memory(self, error: BaseException) -> bool:
        """Whether `error` says that there is not enough memory."""


class Engine(Runner, Protocol):
    """A library that runs workloads; `--engine` calls it by its name.

    Attributes:
        summary: one line for help and docs.
        library: the module to import.
        extra: the extra of ckptcli that installs it.
        programs: what programs of workloads register under that it runs.
        copies_arrays: whether a network has a copy of the workload's parameters and input.
    """

    summary: ClassVar[str]
    library: ClassVar[str]
    extra: ClassVar[str]
    programs: ClassVar[str]
    copies_arrays: ClassVar[bool]

    def with_threads(self, count: int | None) -> AbstractContextManager[str | None]:
        """Inside, compute with `count` threads, None as they are. Yields a warning or None."""

    def network(self, workload: Workload, regions: Sequence[LayerRegion]) -> PeerNetwork:
        """The workload, whose layers are grouped into `regions`; one of `workloads_of` it.

        Raises:
            NoPeer: a policy that the library has no counterpart for.
        """


Program = Callable[[Any, Sequence[LayerRegion]], Any]
"""From a workload and its regions to what some engines run, of a type of their own."""

_REGISTRY: dict[str, type[Engine]] = {}
_PROGRAMS: dict[tuple[str, str], Program] = {}

EngineClass = TypeVar("EngineClass", bound=type[Engine])
ProgramMaker = TypeVar("ProgramMaker", bound=Program)


def register(engine: EngineClass) -> EngineClass:
    """Class decorator: makes the engine known under its `name`."""
    _REGISTRY[engine.name] = engine
    return engine


def program(programs: str, workload: str) -> Callable[[ProgramMaker], ProgramMaker]:
    """Decorator: what it decorates makes the program of the workload of that name, for the engines
    whose `programs` it says.
    """

    def registered(maker: ProgramMaker) -> ProgramMaker:
        _PROGRAMS[programs, workload] = maker
        return maker

    return registered


def engines() -> dict[str, type[Engine]]:
    """Every engine by name. No library is imported."""
    _import_files()
    return dict(sorted(_REGISTRY.items(), key=lambda item: item[0]))


def workloads_of(engine: Engine | type[Engine]) -> list[str]:
    """The names of the workloads that the engine has a program of."""
    _import_files()
    return sorted(name for programs, name in _PROGRAMS if programs == engine.programs)


def program_of(programs: str, workload: Workload, regions: Sequence[LayerRegion]) -> Any:
    """The program of the workload that engines with these `programs` run.

    Raises:
        NoPeer: a policy that the library has no counterpart for.
    """
    _import_files()
    return _PROGRAMS[programs, name_of(workload)](workload, regions)


def name_of(workload: Workload) -> str:
    """What programs are registered under, `silu`."""
    return str(workload.settings["name"])


def _import_files() -> None:
    for module in pkgutil.iter_modules(package.__path__):
        if module.name.endswith(("_engine", "_program")):
            importlib.import_module(f"{package.__name__}.{module.name}")


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


def elsewhere(strategy: Strategy, count: int) -> Elsewhere:
    """What a strategy says that it is for `count` layers of a library's program.

    Raises:
        NoPeer: a strategy that decides op by op, as the libraries never do, and names nothing that
            stands for it, or a policy that moves values to the host, where they are on a CPU.
    """
    found = strategy.elsewhere(count)
    if found is None:
        raise NoPeer("it decides op by op what to hold, the library only by regions")
    if any(region.policy and described(region.policy).moves_to_host for region in found.regions):
        raise NoPeer("on a CPU the library moves nothing to the host: it is there already")
    return found


def regions_of(strategy: Strategy, count: int) -> Sequence[LayerRegion]:
    """How a strategy groups `count` layers there.

    Raises:
        NoPeer: as `elsewhere`.
    """
    return elsewhere(strategy, count).regions
