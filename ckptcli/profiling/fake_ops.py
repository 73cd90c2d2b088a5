"""Ops with shapes only, held against the same for real in a process that may end over one."""

from __future__ import annotations

import json
import pickle
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ckptcli import units
from ckptcli.profiling.parent import child_command, ending_pipe

if TYPE_CHECKING:
    from ckptcli.peers.torch_fake_ops import Call

PATIENCE_S = 60.0
"""How long the ops of a pass may take on a small scale, with loading PyTorch."""

MOST_ENDINGS = 5
"""How often a process may end over an op before the rest is left untried."""


SHOWN = 4
"""Ops in one sentence."""


@dataclass(slots=True)
class Comparison:
    """What was found.

    Attributes:
        same: how many kinds of ops return the same number of bytes.
        differing: op -> bytes for real and by shapes, of the first kind that differs.
        untried: ops that do not run on a small scale.
    """

    same: int = 0
    differing: dict[str, tuple[int, int]] = field(default_factory=dict)
    untried: dict[str, None] = field(default_factory=dict)

    def notes(self) -> Iterator[str]:
        """What a reader of the account has to know, in sentences."""
        tried = units.count(self.same + len(self.differing), "kind")
        if self.differing:
            yield f"the account of these ops is another than a real run's: {self._differing()}"
        else:
            yield f"{tried} of ops, run for real on a small scale, return the bytes of their shapes"
        if self.untried:
            yield f"not held against a real run: {', '.join(f'`{op}`' for op in self.untried)}"

    def _differing(self) -> str:
        """Those that differ most, first."""
        found = sorted(self.differing.items(), key=lambda item: -abs(item[1][0] - item[1][1]))
        shown = ", ".join(
            f"`{op}` ({units.size(real)} for real, {units.size(fake)} by shapes)"
            for op, (real, fake) in found[:SHOWN]
        )
        return shown if len(found) <= SHOWN else f"{shown} and {len(found) - SHOWN} more"


def compared(calls: Sequence[Call]) -> Comparison:
    """Run each call both ways; where the process ends over one, the others go to the next."""
    found, first = Comparison(), 0
    for _ in range(MOST_ENDINGS):
        if first >= len(calls):
            return found
        done = _in_child(calls[first:])
        finished = 0
        for call, sizes in zip(calls[first:], done):
            _enter(found, call, sizes)
            finished += 1
        if finished < len(calls) - first:  # it ended over this one
            found.untried[calls[first + finished].op] = None
        first += finished + 1
    found.untried |= dict.fromkeys(call.op for call in calls[first:])
    return found


def _enter(found: Comparison, call: Call, sizes: Sequence[int | None]) -> None:
    real_bytes, fake_bytes = sizes
    if real_bytes is None or fake_bytes is None:
        found.untried[call.op] = None
    elif real_bytes == fake_bytes:
        found.same += 1
    else:
        found.differing.setdefault(call.op, (real_bytes, fake_bytes))


def _in_child(calls: Sequence[Call]) -> list[list[int | None]]:
    """What a process printed of the calls, as far as it came."""
    with ending_pipe() as pipe:
        try:
            done = subprocess.run(
                child_command([], pipe, "ckptcli.peers.torch_fake_ops"),
                input=pickle.dumps(list(calls)),
                capture_output=True,
                timeout=PATIENCE_S,
                pass_fds=() if pipe is None else (pipe,),
                start_new_session=True,
            )
            printed = done.stdout
        except subprocess.TimeoutExpired as late:
            printed = late.stdout or b""
        except OSError:
            printed = b""
    return [json.loads(line) for line in printed.decode().splitlines() if line.endswith("]")]
