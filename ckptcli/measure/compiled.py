"""What a compiled program takes: by its compiler's plan, and by a run of it in a fresh process.

None is "not known", never 0. `Memory.compiled_peak_bytes` is the figure that verdicts are about.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

from ckptcli.measure.fields import Bytes, Least, Positive, Seconds, derived

Operations = Annotated[float, Least(0)]


@dataclass(frozen=True, slots=True)
class Plan:
    """What a compiler planned for a program: the buffers that it takes from outside and makes.

    Attributes:
        argument_bytes: Parameters and input, bytes.
        output_bytes: Loss and gradients, bytes.
        temp_bytes: Temporaries: as much as their buffers need together, those that share a place
            once, bytes. What a library's kernel allocates by itself is not in it.
        alias_bytes: Of the output what lies in an argument's buffer, bytes.
    """

    argument_bytes: Bytes
    output_bytes: Bytes
    temp_bytes: Bytes
    alias_bytes: Bytes = 0

    @property
    @derived
    def whole_bytes(self) -> Bytes:
        """All that has to be there for the program to run, each place once, bytes."""
        made_bytes = max(0, self.output_bytes - self.alias_bytes)
        return self.argument_bytes + made_bytes + self.temp_bytes


@dataclass(frozen=True, slots=True)
class Compiled:
    """A program that was compiled as one: what the policy asked for, and what the compiler made.

    Attributes:
        plan: What the compiler planned; null if it does not tell.
        fresh_process_bytes: How far the resident memory of a process that did nothing but load the
            program and its arguments rose while it ran it once, bytes; null where it cannot be had.
        device_peak_bytes: The peak of the device's allocator in that process, bytes; null on a
            device that keeps no account, as a processor.
        why_no_process: Why there was no such process, for people; null if there was.
        lowered_flops: Floating-point operations of the program as it was handed to the compiler, by
            the compiler's own count, which leaves out what a library's kernel does.
        flops: The same of what the compiler made of it.
        asked_by_op: Of products, convolutions, library calls and transcendental functions, those
            that the program computes again as it was handed to the compiler, by primitive.
        left_by_op: The same in what the compiler made of it; the body of a scan counts once a turn.
        lower_s: Tracing and lowering, seconds.
        build_s: What the compiler alone took, seconds.
        first_call_s: The first call of the compiled program, seconds; later ones are the samples.
    """

    plan: Plan | None
    fresh_process_bytes: Bytes | None = None
    device_peak_bytes: Bytes | None = None
    why_no_process: str | None = None
    lowered_flops: Operations | None = None
    flops: Operations | None = None
    asked_by_op: dict[str, Positive] | None = None
    left_by_op: dict[str, Positive] | None = None
    lower_s: Seconds | None = None
    build_s: Seconds | None = None
    first_call_s: Seconds | None = None

    @property
    def peak_bytes(self) -> int | None:
        """What must be free: what the device measured, else what the compiler planned."""
        if self.device_peak_bytes is not None:
            return self.device_peak_bytes
        return None if self.plan is None else self.plan.whole_bytes

    @property
    def merged_by_op(self) -> dict[str, int]:
        """What was asked to be computed again and is not; an op of which nothing is left out is
        left out.
        """
        left = self.left_by_op or {}
        asked = self.asked_by_op or {}
        return {op: n - left.get(op, 0) for op, n in asked.items() if n > left.get(op, 0)}


def named(counts: Sequence[tuple[str, int]] | dict[str, int]) -> str:
    """`6 dot_general, 6 logistic`; `nothing` where there is none."""
    pairs = counts.items() if isinstance(counts, dict) else counts
    return ", ".join(f"{number} {op}" for op, number in pairs) or "nothing"
