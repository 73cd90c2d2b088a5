"""Options that say what is run: the program, the strategies, the libraries that run it."""

from __future__ import annotations

from ckptcli.options.group import Options
from ckptcli.options.option import option
from ckptcli.options.refusals import Refusal
from ckptcli.options.subjects import EXPERIMENT, FUNCTION, MODULE, WORKLOAD

_OF_STRATEGIES = frozenset({WORKLOAD, MODULE, FUNCTION})
_OF_WORKLOADS = frozenset({WORKLOAD, EXPERIMENT})


def _is_of_another_library(library: str) -> Refusal:
    """Engines of other libraries than that of the user's own program."""
    return Refusal(("engine_names",), lambda _, engine: engine.partition("-")[0] != library)


class StrategyOptions(Options):
    """Which strategies."""

    strategy_texts: tuple[str, ...] = option(
        (),
        "Strategy, repeatable; `ckpt strategies` lists them.",
        key="strategy",
        short="s",
        metavar="NAME",
        names="strategy",
        default_text="none and balanced",
        subjects=_OF_STRATEGIES,
    )


class ProgramOptions(Options):
    """Which workload, by its name."""

    workload_text: str = option(
        "silu",
        "Program to run: one by its name (a wrong name lists all), or your own.",
        key="workload",
        metavar="NAME|FILE.py:MAKE",
        names="workload",
        subjects=_OF_WORKLOADS,
    )


MOST_THREADS = 1024
"""A BLAS is built for so many at most; libraries end in tracebacks of their own far beyond."""


class DeviceOptions(Options):
    """Which array library computes, where, and on how many threads."""

    backend_name: str = option(
        "numpy",
        "Array library; `ckpt backends` lists them.",
        key="backend",
        metavar="NAME",
        names="backend",
        subjects=_OF_WORKLOADS,
        named_if_changed=True,
    )
    device_name: str | None = option(
        None,
        "Where it computes: cpu, cuda, cuda:N for GPU number N, mps; auto takes a GPU if there is "
        "one.",
        key="device",
        metavar="NAME",
        names="device",
        default_text="the library's first",
        subjects=_OF_WORKLOADS,
    )
    threads: int | None = option(
        None,
        "Threads of the BLAS, of the array library and of PyTorch.",
        section="How to measure",
        at_least=1,
        at_most=MOST_THREADS,
        default_text="as they are",
    )


class PeerOptions(Options):
    """Which other libraries, and a module of the user's own in one of them."""

    engine_names: tuple[str, ...] = option(
        (),
        "Run every strategy in this library too, repeatable; a wrong name lists all.",
        key="engine",
        metavar="NAME",
        names="engine",
        subjects=_OF_STRATEGIES,
    )
    module_text: str | None = option(
        None,
        "A PyTorch module of your own instead; MAKE() gives (module, input).",
        key="module",
        metavar="FILE.py:MAKE|PACKAGE:MAKE",
        subjects=_OF_STRATEGIES,
        refuses=(Refusal(("function_text",)), _is_of_another_library("torch")),
        not_from_found="code that would be run",
    )


class BlockOptions(Options):
    """What strategies group in a module of the user's own."""

    blocks_text: str | None = option(
        None,
        "With --module: the blocks that strategies group, by path or class.",
        key="blocks",
        metavar="GLOB|CLASS",
        subjects=frozenset({MODULE}),
        default_text="the elements of lists of modules",
    )


class InputOptions(Options):
    """What a module of the user's own is given where its file does not say so."""

    input_texts: tuple[str, ...] = option(
        (),
        "With --module: draw this argument, repeatable: 4x3x224x224, int64:4x512.",
        key="input",
        metavar="[DTYPE:]SHAPE",
        subjects=frozenset({MODULE}),
        default_text="what MAKE says",
    )
    keyword_texts: tuple[str, ...] = option(
        (),
        "With --module: call MAKE with this keyword, repeatable: depth=4.",
        key="set",
        metavar="NAME=VALUE",
        subjects=frozenset({MODULE}),
    )


class ShapeOptions(Options):
    """Whether a module of the user's own runs without elements."""

    is_fake: bool = option(
        False,
        "With --module: shapes only; a model that is larger than the machine gets its account.",
        key="fake",
        subjects=frozenset({MODULE}),
    )


class TrainingOptions(Options):
    """How a module of the user's own is trained."""

    accumulate: int | None = option(
        None,
        "With --module: micro-batches, the input as it is each time, before a step.",
        metavar="K",
        at_least=1,
        subjects=frozenset({MODULE}),
        default_text="1, or what its step says",
    )


class FunctionOptions(Options):
    """A function of the user's own in JAX, which no engine need be named for."""

    function_text: str | None = option(
        None,
        "A JAX function of your own instead; MAKE() gives (loss, params, *batch).",
        key="function",
        metavar="FILE.py:MAKE",
        subjects=_OF_STRATEGIES,
        refuses=(_is_of_another_library("jax"),),
    )


class GradientOptions(Options):
    """How long gradients of parameters stay."""

    consume_grads: bool = option(
        False,
        "Let go of each parameter's gradient once it is complete; else all stay to the end.",
        subjects=frozenset({WORKLOAD}),
    )


class ReplayOptions(Options):
    """What else runs a pass."""

    replay: bool = option(
        False,
        "A row more for each strategy: its pass as a flat program, without a tape, bit for bit.",
        subjects=frozenset({WORKLOAD}),
    )


class FaultOptions(Options):
    """What goes wrong on purpose."""

    perturb_text: str | None = option(
        None,
        "Compute again wrongly, to see it caught: {names}.",
        section="Other",
        key="perturb-replay",
        metavar="FAULT",
        names="fault",
        subjects=frozenset({WORKLOAD}),
    )


class MemoryCheckOptions(Options):
    """Whether a program that cannot fit is refused."""

    no_memory_check: bool = option(
        False,
        "Run what cannot fit in memory, which is refused without this.",
        section="Other",
        subjects=_OF_WORKLOADS,
        not_reproduced="what was measured did fit",
    )


class ConfigOptions(Options):
    """Where settings are read from."""

    config_path: str | None = option(
        None,
        "A burn.toml; without it, the nearest one upward is used.",
        section="Other",
        key="config",
        metavar="FILE",
        names="file",
        not_in_child="the parent hands on what the file says",
        not_reproduced="the settings of the file are named",
        not_in_settings="it says which file the settings are in",
    )
