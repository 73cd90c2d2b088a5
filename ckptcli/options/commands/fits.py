"""The options of `ckpt fits`."""

from __future__ import annotations

from ckptcli.options.group import Options, group
from ckptcli.options.measuring import DeviceMemoryOptions, RoundOptions
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
    StrategyOptions,
    TrainingOptions,
)
from ckptcli.options.refusals import Refusal
from ckptcli.options.sweeping import ResultOptions
from ckptcli.options.workload import WorkloadOptions

_ONCE = "it is what this command is for"


class OverOptions(Options):
    """What is made as large as fits."""

    over: str | None = option(
        None,
        "What is made as large as fits: n, layers, batch, steps, chi; of a module a keyword of "
        "MAKE.",
        metavar="NAME",
        default_text="n",
        refuses=(Refusal(("keyword_texts",), lambda over, text: text.partition("=")[0] == over),),
        not_in_settings=_ONCE,
    )
    multiple_of: int = option(
        1,
        "Look at multiples of this alone, as for a width that heads divide.",
        metavar="M",
        at_least=1,
        not_in_settings=_ONCE,
    )
    no_plan: bool = option(
        False,
        "Leave out the row of the best plan, which takes a plan for each size.",
        not_in_settings=_ONCE,
    )


class FitsOptions(Options):
    """`ckpt fits`."""

    limit: DeviceMemoryOptions = group(
        DeviceMemoryOptions,
        device_memory={"help": "How much memory the device has, such as 80GB."},
    )
    size: OverOptions = group(OverOptions)
    strategies: StrategyOptions = group(StrategyOptions)
    program: ProgramOptions = group(ProgramOptions)
    workload: WorkloadOptions = group(WorkloadOptions)
    device: DeviceOptions = group(DeviceOptions)
    function: FunctionOptions = group(
        FunctionOptions,
        function_text={"help": "A JAX function of your own is refused: its MAKE takes no size."},
    )
    peers: PeerOptions = group(
        PeerOptions,
        engine_names={"help": "With --module: the library that the module is of, torch."},
    )
    blocks: BlockOptions = group(BlockOptions)
    inputs: InputOptions = group(InputOptions)
    shapes: ShapeOptions = group(ShapeOptions)
    training: TrainingOptions = group(TrainingOptions)
    gradients: GradientOptions = group(GradientOptions)
    rounds: RoundOptions = group(
        RoundOptions,
        memory_only={"help": "Take no times, and so say none."},
        timeout_s={"help": "Give up on a point after this; what it would prove is not proven."},
    )
    results: ResultOptions = group(
        ResultOptions,
        retry={"help": "With --out or --store: measure the points that failed once more."},
    )
    data: JsonOptions = group(JsonOptions, as_json={"help": "Print one JSON object, ckpt.fits/1."})
    screen: ScreenOptions = group(ScreenOptions)
    notes: QuietOptions = group(QuietOptions)
    memory: MemoryCheckOptions = group(MemoryCheckOptions)
    settings: ConfigOptions = group(ConfigOptions)
