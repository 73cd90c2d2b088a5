"""The options of `ckpt plan`."""

from __future__ import annotations

from ckptcli.options.group import Options, group
from ckptcli.options.measuring import DeviceMemoryOptions
from ckptcli.options.optimizers import OPTIMIZERS
from ckptcli.options.option import option
from ckptcli.options.output import JsonOptions, QuietOptions, ScreenOptions
from ckptcli.options.program import (
    BlockOptions,
    ConfigOptions,
    DeviceOptions,
    FunctionOptions,
    GradientOptions,
    InputOptions,
    MemoryCheckOptions,
    PeerOptions,
    ProgramOptions,
    ShapeOptions,
    TrainingOptions,
)
from ckptcli.options.refusals import Refusal
from ckptcli.options.subjects import FUNCTION, MODULE, WORKLOAD
from ckptcli.options.workload import WorkloadOptions

_ONCE = "it is what this plan is for"
_OF_PROGRAMS = frozenset({WORKLOAD})


class ProblemOptions(Options):
    """What is planned, and with how much."""

    graph_path: str | None = option(
        None,
        "The problem, a JSON file: a dag, a chain, steps, a knapsack, or a program's costs as "
        "--export-graph writes them; - is stdin.",
        key="graph",
        metavar="FILE",
        names="file",
        refuses=(Refusal(("module_text", "function_text")),),
        not_in_settings=_ONCE,
    )
    budget_text: str | None = option(
        None,
        "The most that may be resident at once: a number in the file's unit, or 64MiB, 8GB.",
        key="budget",
        metavar="SIZE",
        refuses=(Refusal(("device_memory",)),),
        not_in_settings=_ONCE,
    )
    slots: int | None = option(
        None,
        "Of steps: how many slots there are, x_0's among them.",
        metavar="S",
        at_least=1,
        not_in_settings=_ONCE,
        subjects=_OF_PROGRAMS,
    )
    disk: int = option(
        0,
        "Of steps: how many more states fit on disk.",
        metavar="D",
        at_least=0,
        not_in_settings=_ONCE,
        subjects=_OF_PROGRAMS,
    )
    write_cost: float = option(
        1.0,
        "Of steps: what writing a state to disk costs, in advances.",
        metavar="W",
        at_least=0,
        not_in_settings=_ONCE,
        subjects=_OF_PROGRAMS,
    )
    read_cost: float = option(
        1.0,
        "Of steps: what reading it costs.",
        metavar="R",
        at_least=0,
        not_in_settings=_ONCE,
        subjects=_OF_PROGRAMS,
    )


class HostOptions(Options):
    """What may leave the device."""

    host_memory_text: str | None = option(
        None,
        "Of a program: let values go to the host's memory, so many bytes of it at once.",
        key="host-memory",
        metavar="SIZE",
        refuses=(Refusal(("planner_name",), lambda _, planner: planner == "cp-sat"),),
        not_in_settings=_ONCE,
        subjects=_OF_PROGRAMS,
    )
    transfer_text: str | None = option(
        None,
        "With --host-memory: what a move costs, 25GB/s with --cost time, else operations a byte.",
        key="transfer",
        metavar="PRICE",
        not_in_settings=_ONCE,
        subjects=_OF_PROGRAMS,
    )


class OptimizerOptions(Options):
    """Whose state is beside a program."""

    optimizer: str | None = option(
        None,
        "With --device-memory: count its state, 0, 1 or 2 times the parameters' bytes; of a module "
        "without one run it.",
        choices=tuple(OPTIMIZERS),
        default_text="none",
        not_in_settings=_ONCE,
        subjects=frozenset({WORKLOAD, FUNCTION, MODULE}),
    )


class RecordedOptions(Options):
    """How a program is planned for, and what is done with its plan."""

    cost_name: str | None = option(
        None,
        "What computing again costs: operations, the time of each op, or their number.",
        key="cost",
        choices=("flops", "time", "count"),
        refuses=(Refusal(("is_fake",), lambda cost, _: cost == "time"),),
        default_text="flops; of a program with --pareto time",
        not_in_settings=_ONCE,
    )
    run: bool = option(
        False,
        "Run the plan: predicted beside measured, gradients against none's.",
        refuses=(Refusal(("is_fake",)),),
        not_in_settings=_ONCE,
    )
    pareto: bool = option(
        False,
        "What every budget buys: peak against cost, and the named strategies among it.",
        section="Output",
        not_in_settings=_ONCE,
    )
    plan_exports: tuple[str, ...] = option(
        (),
        "Write the plan, a .json for --strategy plan:FILE, a .html for people, repeatable.",
        section="Output",
        key="export",
        metavar="FILE",
        names="file",
        has_blanks=True,
        not_from_found="a file that would be written",
    )
    graph_export: str | None = option(
        None,
        "Write what the program costs, for --graph FILE.",
        section="Output",
        key="export-graph",
        metavar="FILE",
        names="file",
        not_in_settings=_ONCE,
        subjects=_OF_PROGRAMS,
    )


class PlannerOptions(Options):
    """Who plans."""

    planner_name: str = option(
        "auto",
        "Who plans; auto asks all that fit and takes the best; a wrong name lists them.",
        section="How to measure",
        key="planner",
        metavar="NAME",
        names="planner",
        subjects=_OF_PROGRAMS,
    )
    time_limit_s: float | None = option(
        None,
        "End searches after this, which then depends on the machine.",
        section="How to measure",
        key="time-limit",
        metavar="SECONDS",
        at_least=0,
        at_most=1e8,
        default_text="after so many states, some seconds",
        subjects=_OF_PROGRAMS,
    )


class ActionsOptions(Options):
    """Where the schedule goes."""

    actions_path: str | None = option(
        None,
        "Write the schedule, an action a line, however long.",
        section="Output",
        key="actions",
        metavar="FILE",
        names="file",
        not_in_settings="a file is written where the command line says so",
        subjects=_OF_PROGRAMS,
    )
    force: bool = option(
        False,
        "Replace a file that exists.",
        section="Output",
        not_from_found="which lets files be overwritten",
    )


class PlanOptions(Options):
    """`ckpt plan`."""

    problem: ProblemOptions = group(ProblemOptions)
    limit: DeviceMemoryOptions = group(
        DeviceMemoryOptions,
        device_memory={
            "help": "Instead of --budget: the most in all, with parameters, input and optimizer.",
            "section": "What to run",
            "subjects": frozenset({WORKLOAD, MODULE, FUNCTION}),
        },
    )
    optimizer: OptimizerOptions = group(OptimizerOptions)
    host: HostOptions = group(HostOptions)
    program: ProgramOptions = group(
        ProgramOptions, workload_text={"help": "Program to plan for, where there is no --graph."}
    )
    workload: WorkloadOptions = group(WorkloadOptions)
    device: DeviceOptions = group(DeviceOptions)
    function: FunctionOptions = group(FunctionOptions)
    peers: PeerOptions = group(
        PeerOptions,
        engine_names={
            "help": "jax: also what comes closest to a program's plan there. With --module and "
            "--function the library that they are of."
        },
    )
    blocks: BlockOptions = group(
        BlockOptions,
        blocks_text={
            "help": "With --module: the blocks that strategies group, by path or class. With "
            "--function: the function each call of which may be under a checkpoint.",
            "metavar": "GLOB|CLASS|FUNCTION",
            "default_text": "the elements of lists of modules; functions that are called a layer",
            "subjects": frozenset({MODULE, FUNCTION}),
        },
    )
    inputs: InputOptions = group(InputOptions)
    shapes: ShapeOptions = group(ShapeOptions)
    training: TrainingOptions = group(TrainingOptions)
    gradients: GradientOptions = group(GradientOptions)
    recorded: RecordedOptions = group(RecordedOptions)
    planner: PlannerOptions = group(PlannerOptions)
    data: JsonOptions = group(JsonOptions, as_json={"help": "Print one JSON object, ckpt.plan/1."})
    actions: ActionsOptions = group(ActionsOptions)
    screen: ScreenOptions = group(ScreenOptions)
    notes: QuietOptions = group(QuietOptions)
    memory: MemoryCheckOptions = group(MemoryCheckOptions)
    settings: ConfigOptions = group(ConfigOptions)
