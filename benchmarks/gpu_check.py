"""Does every strategy do on this machine's GPU what it does on NumPy, and what does it cost there?

    scripts/gpu-check FOLDER

For each array library that has a GPU: Burn's recorded programs (log, node ids, gradients), and the
silu network under three strategies (gradients, log, ledger, order of the peaks; figures).
FOLDER/gpu-check.json is replaced after each part. Exit codes: 0 everything holds, 1 something does
not or was left out, 2 there is nothing to check or the command line is wrong.

Needs Python, NumPy and the array library; nothing is installed and nothing is fetched.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import sys
import time
import traceback
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from gpu_parts import Target, conformance, network

from ckptcli.backends.registry import libraries, not_loaded, open_backend
from ckptcli.errors import CkptError, UsageError
from ckptcli.measure.machine import read_machine
from ckptcli.measure.record_json import with_finite_numbers
from ckptcli.version import VERSION

SCHEMA = "ckpt.gpu-check/1"


def find_targets(backend: str | None, device: str | None) -> list[Target]:
    """The library that was asked for; else the first GPU of each library that has one.

    Raises:
        UsageError: it is not there; or none is.
    """
    if backend is not None:
        return [Target(open_backend(backend, device), device or "its first device")]
    found, missing = [], []
    for name, library in libraries().items():
        if set(library.device_names) == {"cpu"}:
            continue
        if library.installed_version() is None:
            missing.append(f"{library.title} is not installed")
            continue
        try:
            gpus = [facts for facts in library.devices() if facts.is_gpu]
        except Exception as error:
            missing.append(not_loaded(library, error))
            continue
        if gpus:
            found.append(Target(open_backend(name, gpus[0].name), gpus[0].title))
        else:
            missing.append(f"{library.title} finds no GPU")
    if not found:
        raise UsageError(f"no GPU to check: {', '.join(missing)}", "name one: --backend, --device")
    return found


@dataclass(slots=True)
class Report:
    """What is written: the targets so far, and what was left out."""

    path: Path
    options: dict[str, Any]
    targets: list[Target]
    started: float = field(default_factory=time.monotonic)
    left_out: list[str] = field(default_factory=list)

    @property
    def passed(self) -> bool:
        return not self.left_out and not any(target.broken for target in self.targets)

    def write(self, finished: bool) -> None:
        """Replace the file as a whole."""
        warnings: list[str] = []
        content = {
            "schema": SCHEMA,
            "version": VERSION,
            "finished": finished,
            "passed": finished and self.passed,
            "wall_s": time.monotonic() - self.started,
            "options": self.options,
            "machine": asdict(read_machine()),
            "left_out": self.left_out,
            "targets": [
                {
                    "backend": target.backend.name,
                    "device": target.backend.label,
                    "title": target.title,
                    "library": target.backend.library,
                    "broken": target.broken,
                    **target.parts,
                }
                for target in self.targets
            ],
        }
        temporary = self.path.with_suffix(".part")
        finite = {**with_finite_numbers(content, "", warnings), "warnings": warnings}
        temporary.write_text(json.dumps(finite, indent=1, allow_nan=False) + "\n", "utf-8")
        os.replace(temporary, self.path)

    def run(self, target: Target, what: str, part: Callable[[], None], limit_s: float) -> None:
        """Run one part, unless the time is up; a part that fails is broken."""
        name = f"{target.backend.name} on {target.title}: {what}"
        if time.monotonic() - self.started > limit_s:
            self.left_out.append(name)
            print(f"{name}: left out, the time is up", flush=True)
            return
        print(name, flush=True)
        begun = time.monotonic()
        try:
            part()
        except Exception as error:  # whatever a library raises is a finding, not the end
            traceback.print_exc()
            target.hold(False, f"{what}: {type(error).__name__}: {error}")
        gc.collect()
        target.backend.release_cached()
        print(f"  {time.monotonic() - begun:.1f} s", flush=True)
        self.write(finished=False)


def parser() -> argparse.ArgumentParser:
    """The command line."""
    parser = argparse.ArgumentParser("gpu-check", description=__doc__.split("\n")[0])
    parser.add_argument("folder", type=Path, help="for gpu-check.json")
    parser.add_argument("--backend", help="this library alone")
    parser.add_argument("--device", help="of --backend: cpu, cuda, cuda:1, mps")
    parser.add_argument("--sizes", type=_sizes, default=[1024, 8192], metavar="N,N")
    parser.add_argument("--layers", type=int, default=8)
    parser.add_argument(
        "--cases", type=int, default=10**6, help="at most so many recorded programs"
    )
    parser.add_argument("--max-time", type=float, default=10.0, help="seconds of rounds a network")
    parser.add_argument("--minutes", type=float, default=6.0, help="no part begins after this")
    return parser


def _sizes(text: str) -> list[int]:
    return [int(part) for part in text.split(",")]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run every part; returns the exit code."""
    options = parser().parse_args(arguments)
    try:
        targets = find_targets(options.backend, options.device)
    except CkptError as error:
        print(f"gpu-check: {error}", file=sys.stderr)
        return error.exit_code
    options.folder.mkdir(parents=True, exist_ok=True)
    settings = {name: value for name, value in vars(options).items() if name != "folder"}
    report = Report(options.folder / "gpu-check.json", settings, targets)
    limit_s = options.minutes * 60.0
    for target in targets:
        report.run(target, "conformance", partial(conformance, target, options.cases), limit_s)
    for n in options.sizes:
        for target in targets:
            part = partial(network, target, options.layers, n, options.max_time)
            report.run(target, f"{options.layers} layers of n = {n}", part, limit_s)
    report.write(finished=True)
    print(f"{'passed' if report.passed else 'FAILED'}; figures in {report.path}")
    return 0 if report.passed else 1


if __name__ == "__main__":
    sys.exit(main())
