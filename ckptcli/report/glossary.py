"""What the words and metrics of the output mean: `ckpt explain`.

Invariant: every column, reason, verdict and key of the output has an entry; tests hold it to that.
A key that is no word gets the text of the schema (`ckptcli.report.keys`), said there alone.
Definitions say what is counted, in which unit, and where the figure comes from.

Source of the words of checkpointing: Burn 0.22.1, `burn-autodiff/src/checkpoint`.
"""

from __future__ import annotations

from collections.abc import Iterable

from ckptcli.errors import UnknownNameError
from ckptcli.report.aliases import ALIASES

GLOSSARY = {
    # What is profiled.
    "workload": "The differentiable program that is profiled: the silu network, a case of a graph "
    "file, the TRG, or a program of your own. `chain` is an experiment without strategies.",
    "silu": "The workload of h = silu(h @ w) in each layer; the loss is the sum of the last h.",
    "trg": "The workload of a tensor renormalisation group: ln Z per spin of the 2D Ising model, "
    "with a singular value decomposition in each step.",
    "chain": "The experiment with a checkpoint after each round: what a history of checkpoints "
    "costs, by the rule that merges it.",
    "layer": "A part of the program that strategies can group into regions; a step of the TRG.",
    "batch": "The rows of the silu network's input.",
    "strategy": "What decides in the forward pass which values are held for the backward pass, and "
    "which are computed again in it. `ckpt strategies` lists them.",
    "none": "The strategy that holds every value that the backward pass needs and recomputes "
    "nothing; the usual reference.",
    "balanced": "The strategy that recomputes what is bound by memory (element-wise ops) and holds "
    "what is bound by arithmetic (matrix products). Burn's `BalancedCheckpointing`.",
    "gradient checkpointing": "Holding fewer values from the forward pass for the backward pass "
    "and computing the others again when it needs them: less memory for more time.",
    "checkpoint": "A value that is kept so that what follows can be computed again from it. Also a "
    "region that is recomputed from its inputs (`jax.checkpoint`), and of traced tensors, to "
    "evaluate now and go on from the value.",
    "bound": "What limits an op by Burn's mark: compute (arithmetic) or memory (traffic). "
    "`balanced` recomputes what is bound by memory. `ckpt ops` lists the marks.",
    "held": "Kept from the forward to the backward pass; what `saved` counts.",
    "replay": "A region's forward, run again in the backward pass. `--perturb-replay` makes it "
    "wrong on purpose. In a row's name, with `--replay`, the pass as a flat program.",
    "flat program": "A pass as the calls that it makes of the array library, compiled; "
    "`--replay` puts it beside the same pass on the tape, whose bits it has.",
    "residuals": "Intermediate values that are kept so that nothing has to be computed again.",
    "region": "A part of the forward pass that a strategy computes again as one, from its inputs.",
    "has_caller": "Of a PyTorch module in the JSON: whether some of its blocks run one after "
    "the other, by a `Sequential` or a plain loop, so that a region can have several.",
    "policy": "Which values of a region may be held all the same; the others are computed again.",
    "backend": "The array library that computes, on a device. `ckpt backends` lists them.",
    "device": "Where the arrays live and under which strategy the engine runs, as Burn prints it.",
    "node": "One value of the recorded graph: a leaf, or the result of an op. Nodes are numbered "
    "from 0 in the order in which the forward pass makes them.",
    "leaf": "A node without parents: a parameter, an input or a constant.",
    "op": "One operation of the forward pass, such as `matmul` or `sigmoid`.",
    "seed": "The number that the weights, the input and the order of the first round are drawn "
    "from.",
    "loss": "The sum of the elements of the program's last value. It is null in JSON if it is not "
    "finite.",
    "derivative": "The gradient of a program with one parameter of one element, a single number.",
    "exact": "The loss and its derivative as theory has them, where they are known: of the TRG, a "
    "torus of up to 2^6 spins, or the infinite lattice from 12 steps on.",
    "finite difference": "The derivative of the loss from its values at points nearby, a "
    "fourth-order central difference. It is left out where two steps, or the derivatives to either "
    "side, differ by more than a millionth.",
    # Of `ckpt check` and `ckpt saved`.
    "finite differences": "The gradient along random directions against differences of the loss to "
    "either side; `unusable`, with the reason, where these differ among themselves or the program "
    "takes another branch, as at a kink.",
    "recomputed values": "How many values that were computed again have every bit of the forward "
    "pass's.",
    "random draws": "How many draws the program made: a strategy must not change their number.",
    "decompositions": "Where a singular value decomposition that was computed again differs from "
    "the forward pass's: in signs, or in sizes.",
    "gauge": "A choice that changes no result, such as the sign of a pair of singular vectors. A "
    "gradient formed under one choice must not meet another.",
    "made at": "The line of the program that made the value.",
    "freed after": "The step of the backward pass after which the storage is gone.",
    "joints": "Of the TRG: the products of two halves of tensors.",
    # Of the chain.
    "history": "The checkpoints that the gradient of a traced tensor has to see through.",
    "entries": "Of a history: how many records of a checkpoint there are, copies included.",
    "graphs": "Of a history: how many of its entries are different ones.",
    "anew": "Of several betas: with a graph that is built for this beta, and a checkpoint after "
    "each step, which runs at once and so needs beta as data.",
    "instructions": "Of a traced program: the ops that each run of it carries out, in a flat list.",
    "merge": "How the histories of two operands become one: shared, the left one copied onto the "
    "right one (copy; ptr-eq: unless both are one list; dedup: what the right one lacks), or the "
    "left one alone.",
    # Memory.
    "ledger": "The exact account of live storages in bytes: each array that the engine owns, a "
    "view counted once with its base, from its birth to its last reference. Taken in a pass of its "
    "own, which is not timed.",
    "in use": "Bytes of all live storages by the ledger, parameters and input included.",
    "params + input": "Bytes of the parameters and the input, before the forward pass, by the "
    "ledger.",
    "after forward": "Bytes in use when the forward pass is over, by the ledger.",
    "saved": "Bytes of what is live after the forward pass besides parameters, input and output, "
    "by the ledger; the number of storages stands beside it. Of what is live: such a storage "
    "that still is.",
    "peak": "The most bytes that a pass needs at once, parameters and input included: the ledger "
    "peak and, where it is known, the workspace of kernels on top; of a program that is compiled "
    "whole the plan. Tables, charts, verdicts and `--fail-on peak_bytes` all mean this figure.",
    "plan": "Of a compiled program: what its compiler planned for arguments, output and "
    "temporaries, places that are shared counted once. What a library's kernel allocates by "
    "itself is not in it.",
    "ledger peak": "The most bytes that are live at once by the ledger, exact, without the "
    "workspace of kernels. `--fail-on` calls it `ledger_peak_bytes`; pictures of the pass are this "
    "high.",
    "workspace": "Arrays that a kernel allocates and frees before it returns, which the ledger "
    "cannot see: how much the peak is above the ledger peak. Bytes, a bound; of a PyTorch module "
    "by its allocator's own account, and so with what PyTorch makes without an op, as the random "
    "states that checkpoints keep. n/a where nobody tells.",
    "highest point": "The op of the backward pass, of a PyTorch module that of the whole pass, "
    "during which most bytes are live by the ledger. Bars and lists show what is live there, and "
    "why.",
    "process peak": "How far the resident memory of the process rose above what it had before a "
    "pass: what the system saw, beside what the ledger counted. Of a compiled program it is that "
    "of a fresh process, which loads the program and runs it once. n/a where it cannot be had.",
    "live bytes": "Bytes of the storages that exist, by the ledger, without the workspace of "
    "kernels.",
    "in use after backward": "Bytes that are live when the backward pass is over: parameters, "
    "input, output and the gradients of the parameters, by the ledger.",
    "parameter": "Of what is live: a leaf that requires a gradient.",
    "optimizer": "Of what is live: the state that an optimizer keeps from step to step.",
    "buffer": "Of what is live: a tensor that a PyTorch module keeps beside its parameters, as the "
    "running mean of a batch normalisation.",
    "input": "Of what is live: a leaf that requires no gradient, such as the network's input.",
    "output": "Of what is live: the value that `backward()` was called on, or another value that "
    "the forward pass left in the caller's hands.",
    "value": "In a trace: a storage that is the value of a node.",
    "gradient": "Of what is live: the gradient of a value that is no leaf, on its way to the "
    "node's parents.",
    "gradient of a parameter": "Of what is live: a gradient that the caller gets.",
    "temporary": "Of what is live: a storage that a backward step works with, and that is no value "
    "or gradient of a node.",
    "timeline": "Live bytes over the pass, by op: the most that was live while the op ran.",
    # What is computed twice.
    "recomputed": "The number of nodes that the backward pass computes again, one counted as often "
    "as it is computed. Of what is live: a storage that holds such a value.",
    "dropped": "A node whose value no backward step needs: it is not held and not recomputed.",
    "backup": "What a strategy would need to compute a value again; dropped before the backward "
    "pass where nobody asks for it.",
    "retrieve_node_output": "A line of Burn's log: a backward step asks the checkpointer for the "
    "value of this node.",
    "node(s) to compute": "In a line of Burn's log: how many nodes stand between the value asked "
    "for and values that are held, itself and held ones included; 1 is a value that is held.",
    "execute_retro_forward": "A line of Burn's log at full: a node on the way to the value asked "
    "for, operands first. A held value is taken, any other is computed again.",
    "visits": "Of `ckpt log --sort before-5679`: how often the sort of a retrieval has a node in "
    "hand, once a retrieval today. The old sort went through a node's operands for each way to it.",
    "look-ups": "Of `ckpt log --sort before-5679`: how often the old sort looked for an id in the "
    "list that it was making, from the front, by comparisons of two ids.",
    "n_required": "Burn's name for how often the backward pass needs a value: counted before its "
    "first step, so that the value is let go with its last use.",
    "retrieval": "A backward step asking for the value of a node; Burn's log has a line for each.",
    "operations": "Floating-point operations of the forward pass, by each op's formula; "
    "recomputed operations are given as a share of them. What a backward step evaluates inside "
    "itself is in neither.",
    "bytes moved": "Bytes that the ops of the forward pass read and write; recomputed traffic is "
    "given as a share of them. A view moves none.",
    "trace": "The memory pass as it went: timeline, lives of storages, fate of each node, "
    "retrievals. Lists are cut to what a page can show.",
    # Time.
    "forward": "Seconds of the forward pass: the median over the rounds.",
    "backward": "Seconds of the backward pass, recomputation included: the median over the rounds.",
    "step": "Seconds of the optimizer's step, of a PyTorch module that is trained with one: the "
    "median over the rounds.",
    "micro-batch": "A forward and a backward pass of several before the optimizer's step, whose "
    "gradients add up (`--accumulate`).",
    "total": "Seconds of all phases together, summed in each round: the median over the rounds. "
    "`--fail-on` calls it `time`.",
    "round": "Every strategy timed once, in an order that is reversed every other round, so that "
    "all share the drift of the machine.",
    "rep": "One pass of one strategy; `rep 0` is the first of the warm-up.",
    "warm-up": "Rounds before the counted ones: shown, never in a median.",
    "sample": "One timed pass, without the ledger and with the garbage collector off. A pass "
    "shorter than 10 ms is repeated inside the sample and divided.",
    "process": "Rounds can be spread over fresh processes (`--processes`). Memory layout and the "
    "BLAS's threads stay within one: samples of one process are not independent.",
    "stopped": "Why no further round was made: as many as asked, intervals within 1 %, the most "
    "rounds, `--max-time`, or an interrupt.",
    "partial": "The measurement ended before its time; only complete rounds are in the figures.",
    "median": "The middle one of the sorted samples: half of them are below.",
    "interval": "Where the true median or ratio lies with 95 % confidence. In one run the exact "
    "order-statistic interval, between saved runs the percentile interval of the bootstrap.",
    "range": "The least and the largest value, shown instead of an interval under six rounds.",
    "middle half": "The interquartile range of the samples as a share of the median (IQR / median)"
    ": how far the middle half of them spreads.",
    "least": "The smallest sample.",
    "mean": "The sum of the samples by their number. A single slow sample moves it; the median "
    "hardly.",
    "standard deviation": "How far samples lie from their mean; it says nothing about how well the "
    "median is known.",
    "percentile": "p5 and p95: the times that 5 % and 95 % of the samples are below.",
    # Comparing.
    "reference": "The strategy that the others are compared with: the one that was added for it, "
    "else `none`.",
    "vs reference": "The ratio of the total time to the reference's, and the verdict on it.",
    "base": "In `ckpt compare`: the saved run that the others are compared with.",
    "ratio": "How many times the reference's (or base's) time; above 1 is slower. In one run the "
    "median of the ratios of each round, between saved runs the ratio of the medians.",
    "threshold": "A time ratio within this of 1 is `same`; 2 % unless `--threshold` says "
    "otherwise.",
    "faster": "Time verdict: the whole interval of the ratio is below 1, and not inside the "
    "threshold.",
    "slower": "Time verdict: the whole interval of the ratio is above 1, and not inside the "
    "threshold.",
    "same": "Time verdict: the whole interval of the ratio is inside the threshold around 1.",
    "unclear": "Time verdict: the interval, wider where several comparisons are made, holds 1 and "
    "more than the threshold, or the runs cannot be compared. More rounds or processes narrow it.",
    "judgement": "One word on what a strategy does to memory against the reference, and why: the "
    "first that applies of wrong, worse, effective, held only, no effect.",
    "wrong": "Judgement: a gradient differs from the reference's, bit for bit, or of another "
    "engine from ckpt's by more than the tolerance; the reason says who stands with whom. The run "
    "exits with 5.",
    "worse": "Judgement: has more in use after forward, or peaks higher, by more than 2 %.",
    "effective": "Judgement: the peak is lower by more than 2 %.",
    "held only": "Judgement: has less in use after forward by more than 2 %, but the peak is "
    "unchanged; the reason says which values set it.",
    "no effect": "Judgement: neither has less in use after forward, parameters included, nor peaks "
    "lower, by more than 2 %; the reason says why.",
    "identical": "Of gradients: every bit of every gradient is the reference's; DIFFER otherwise.",
    # In other libraries.
    "engine": "A library that runs a workload natively beside ckpt (`--engine`): `torch` (silu), "
    "`jax` compiled, `jax-eager` op by op and `jax-scan` with a loop over layers (silu, trg).",
    "peer": "One strategy in another library, timed in the same rounds. Its row is n/a where the "
    "library has no counterpart.",
    "agrees": "Of a peer: loss and gradients are within 1e-5 of ckpt's in float32, 1e-12 in "
    "float64, as a share of the largest element of each gradient; wider in a long TRG, where "
    "rounding alone goes further. Otherwise it differs, and the run exits with 5.",
    "ulp": "The spacing of the dtype at a number, here at the largest element of a gradient.",
    "compile": "Seconds of tracing and compiling, in no sample and no ratio; `lower` is tracing "
    "and lowering alone. The first call and the steady time stand beside it.",
    "asked again": "Of a compiled program: the products, library calls and transcendental "
    "functions that a checkpoint computes again before the compiler has seen it; `left` is how "
    "many of them the compiler left.",
    # Data.
    "machine": "The processor, memory, Python, NumPy and BLAS that a run was made with. Times of "
    "different machines are not comparable.",
    "threads": "How many threads a library computes with; of ckpt's own engine the BLAS's are in "
    "`machine`.",
    "origin": "When a run began (UTC), on which host, at which commit of the repository that it "
    "was started in, and by which command line.",
    "config": "The effective settings of the command that made the run; `ckpt config` prints them "
    "with their origin.",
    "schema": "The name and version of the form of a JSON object, `ckpt.run/1`.",
    "warning": "What puts a figure in doubt, with a number and advice. On stderr, and in "
    "`warnings` of the JSON.",
    "failure": "A strategy that ran out of memory: where, what the library said, and what was live "
    "then. It has no figures, and the exit code is 1.",
    "allocator's peak": "The most that a device's allocator had requested, allocated (blocks "
    "rounded up) and reserved (taken from the device) in a phase, of the whole process; what is "
    "reserved beyond is in no block: fragments, and blocks that it keeps. It stands beside the "
    "ledger and decides no verdict.",
    "run-to-run spread": "How far two runs of one program lie apart on a library that is not "
    "deterministic. Gradients that differ no more than that are not wrong.",
    "offloaded": "Bytes that a policy or a plan moved to the host's memory; they come back at "
    "their first use in the backward pass. What the ledger counts on the device is without them.",
    "n/a": "Not known, or not measured. Never 0.",
    # What is planned, and what fits.
    "budget": "The most that a pass may add to what is there before it; what that is, the heading "
    "of a plan says. `--device-memory` is the same limit with all that is there.",
    "extra cost": "What is computed again as a share of what the forward pass costs once, in the "
    "unit of `--cost`: operations, time, or ops.",
    "predicted time": "The times of all ops that a plan or a strategy runs, added up; each was "
    "measured apart.",
    "dominated": "Of a strategy in `ckpt plan`: another plan takes no more memory, costs no more, "
    "and is better in one of them.",
    "slot": "Of equal steps: room for one state that is kept.",
    "says": "What a planner adds to its plan, or why it made none.",
    "law": "The polynomial of a size that a peak in bytes follows, exact at every size that was "
    "measured; of times a power of each size, with intervals.",
    "best plan": "In `ckpt fits` the plan of `ckpt plan` that takes least of all at each size, or "
    "the cheapest within the limit at the answer.",
    "known": "How `ckpt fits` knows an answer: `measured` there and at the next size, `by shapes`, "
    "`planned`, or `by law` alone, which nothing at that size proves.",
    "peak at the next": "In `ckpt fits` the peak at the smallest size that does not fit.",
    "time of a pass": "The median of forward and backward at that size, extrapolated by a law "
    "where it was not measured there.",
    "apart": "How far a gradient lies from what it is held against, as a share.",
    "scatter": "How far the finite differences of one direction lie from each other, as a share: "
    "what `apart` may be by itself.",
}
"""Term -> one or two sentences."""


def define(term: str, others: Iterable[str] = ()) -> tuple[str, str]:
    """The term or key that defines `term`, and its definition; case, spaces and an `s` at its end
    do not matter.

    Raises:
        UnknownNameError: no such term; names the nearest of the terms and of `others`.
    """
    name = " ".join(term.split()).lower()
    spellings = [name, name.replace("_", " "), name.replace(" ", "_"), name.removesuffix("s")]
    for found in [ALIASES.get(spelling, spelling) for spelling in spellings]:
        if found in GLOSSARY:
            return found, GLOSSARY[found]
    from ckptcli.report.keys import key_definitions

    keys = key_definitions()
    for found in spellings:
        if found in keys:
            return found, keys[found]
    known = [*GLOSSARY, *ALIASES, *keys, *others]
    raise UnknownNameError("term", name, known, "ckpt explain")


def defined_terms() -> dict[str, str]:
    """Every term with its definition: the glossary, then the keys of the JSON that it lacks."""
    from ckptcli.report.keys import key_definitions

    own = key_definitions().items()
    rest = {key: text for key, text in own if key not in GLOSSARY and key not in ALIASES}
    return {**GLOSSARY, **rest}


def other_names(term: str) -> list[str]:
    """The aliases of a term of the glossary."""
    return [alias for alias, name in ALIASES.items() if name == term]
