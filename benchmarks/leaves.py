"""What `ckpt check` costs a leaf, on a program with many parameters of one element each.

`scripts/bench engine leaves` prints it. Every direction moves one leaf in eight, so that their
number does not grow; each of their passes takes time in proportion to the program.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path

from watched import command_s

Show = Callable[[str, float, float], None]

FEW, MANY = 400, 3_200

PROGRAM = """
def leaves(count):
    def make(device):
        weights = [device.tensor([0.1 + 0.01 * (i % 7)]).require_grad() for i in range(count)]
        x = device.tensor([0.5])

        def loss():
            y = x
            for weight in weights:
                y = (y * weight).sin()
            return y.sum()

        return loss

    return make

none, few, many = leaves(1), leaves(FEW), leaves(MANY)
"""


def leaves(show: Show) -> None:
    print("leaves: `ckpt check`, a product and a sine for each parameter")
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "program.py"
        file.write_text(PROGRAM.replace("FEW", str(FEW)).replace("MANY", str(MANY)))
        spent_s = {
            name: min(command_s("check", "--workload", f"{file}:{name}") for _ in range(3))
            for name in ("none", "few", "many")
        }
    few_s, many_s = ((spent_s[n] - spent_s["none"]) / c for n, c in (("few", FEW), ("many", MANY)))
    print(f"  {few_s * 1e3:.2f} and {many_s * 1e3:.2f} ms a leaf")
    show(f"a leaf of {MANY:,} / of {FEW}", many_s / few_s, 1.3)
