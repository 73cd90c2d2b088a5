"""A chain of stages that differ, after Beaumont, Eyraud-Dubois, Herrmann, Joly and Shilova
(RR-9302, 2019).

Stage i of 1..L makes the tensor a_i of a_{i-1}; abar_i is all that its backward step needs, a_i
included; d_i is a gradient. Three operations: *forward* adds a_i, *forward_all* adds abar_i, both
of a_{i-1} or abar_{i-1}; *backward* adds d_{i-1}, of d_i, abar_i, and a_{i-1} or abar_{i-1}, after
which d_i, abar_i and every later tensor are gone. Operands stay resident meanwhile, the result must
fit beside everything, and freeing costs nothing. A pass starts with a_0 and d_L and ends with d_0.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from ckptcli.planning.problems.base import Number, reads
from ckptcli.planning.problems.fields import Fields
from ckptcli.units import count


@dataclass(frozen=True, slots=True)
class ChainProblem:
    """A chain. Stage i is entry i - 1 of what has L entries; tensor i is entry i of L + 1.

    Attributes:
        uf, ub: the cost of a stage's forward and backward, (L,).
        A: the size of a_0 .. a_L.
        B: the size of abar_1 .. abar_L.
        D: the size of d_0 .. d_L.
        of, ob: what forward and backward take beside operands and result, (L,).
    """

    uf: tuple[Number, ...]
    ub: tuple[Number, ...]
    A: tuple[int, ...]
    B: tuple[int, ...]
    D: tuple[int, ...]
    of: tuple[int, ...]
    ob: tuple[int, ...]

    kind: ClassVar[str] = "chain"
    unit: ClassVar[str] = "unit of memory"

    @property
    def stages(self) -> int:
        """How many, L."""
        return len(self.uf)

    @property
    def base_cost(self) -> Number:
        """Every stage forward and backward once."""
        return sum(self.uf) + sum(self.ub)

    @property
    def whole_size(self) -> int:
        """What every tensor takes together, and the largest workspace: enough for any plan."""
        return sum((*self.A, *self.B, *self.D)) + max(*self.of, *self.ob)

    @property
    def title(self) -> str:
        """`chain of 6 stages`."""
        return f"chain of {count(self.stages, 'stage')}"


@reads("chain")
def read_chain(fields: Fields) -> ChainProblem:
    """`uf`, `ub`, `A`, `B`; without `D` gradients are as large as tensors, `of` and `ob` are 0."""
    uf, ub = fields.costs("uf"), fields.costs("ub")
    count = len(uf)
    if not count:
        fields.fail("`uf` is empty", "a chain has at least one stage")
    A, B = fields.sizes("A"), fields.sizes("B")
    D = fields.sizes("D") if "D" in fields else A
    none = (0,) * count
    of, ob = (fields.sizes(key) if key in fields else none for key in ("of", "ob"))
    lengths = {"ub": ub, "A": A, "B": B, "D": D, "of": of, "ob": ob}
    for key, values in lengths.items():
        wanted = count + 1 if key in ("A", "D") else count
        if len(values) != wanted:
            fields.fail(
                f"`{key}` has {len(values)} entries for {count} stages of `uf`",
                f"give it {wanted}",
            )
    return ChainProblem(uf, ub, A, B, D, of, ob)
