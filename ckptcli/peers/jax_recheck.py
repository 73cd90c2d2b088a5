"""Which value a checkpoint computes again otherwise: all op by op, the first one in a compiled one.

Op by op every value inside a checkpoint is seen at once. A compiled program is another with every
value that one wants to see, so that it is searched: the results of all regions are looked at, and
from the first that differs backwards, by halves, and then operand by operand, until a value differs
whose operands do not. That primitive is at fault, or what the compiler made of it.

Source: bisection over the ancestors of a value; `ckptcli.peers.jax_probe`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
import numpy as np

from ckptcli.measure.function_check import Compiled
from ckptcli.measure.machine import available_bytes
from ckptcli.measure.wrong_values import EquationValue
from ckptcli.peers.agreement import distance
from ckptcli.peers.jax_places import source_of, user_line
from ckptcli.peers.jax_probe import Probes, Seen, Site
from ckptcli.verify.bits import first_difference

SHARE_OF_MEMORY = 4
"""A pass with every probe may take a quarter of what is free, held twice; else there are fewer."""

MOST_REGIONS = 12
"""Looked at one by one, where all at once show nothing."""


class Recheck:
    """A traced program with checkpoints, its arguments, and what was looked at so far."""

    def __init__(self, traced: Any, parameters: Sequence[Any], arrays: Any) -> None:
        self._probes = Probes(traced, len(parameters))
        self._parameters = parameters
        self._arrays = arrays
        self._programs = 0
        self._known: dict[int, EquationValue | None] = {}

    @property
    def sites(self) -> Sequence[Site]:
        """Every equation inside a checkpoint."""
        return self._probes.sites

    def op_by_op(self) -> tuple[int, list[EquationValue]]:
        """How many values were seen in both passes, and those that came back otherwise."""
        with jax.disable_jit():
            seen, _, _ = self._probes.see(self._seen_at_once(), *self._where(), compiled=False)
        return len(seen), [wrong for one in seen if (wrong := recomputed(one)) is not None]

    def _where(self) -> tuple[Sequence[Any], Any]:
        return self._parameters, self._arrays

    def _seen_at_once(self) -> list[Site]:
        """Every site, or where that takes too much the results of regions."""
        probed = [site for site in self.sites if site.probed]
        free = available_bytes()
        if free is not None and SHARE_OF_MEMORY * 2 * sum(s.bytes for s in probed) > free:
            return [site for site in probed if site.is_output]
        return probed

    def compiled(self, gradients: Sequence[Any]) -> Compiled:
        """The first value that the compiled program recomputes otherwise; `gradients` are those
        that it has without probes.
        """
        target = self._first_region()
        if target is None:
            return Compiled(self._programs, None, None, False)
        first = self._first_of(target)
        found, undisturbed = self._look_alone(first, gradients)
        others = [known for known in self._known.values() if known is not None]
        farthest = max(others, key=lambda known: known.apart, default=None)
        return Compiled(self._programs, found, farthest, undisturbed)

    def _first_region(self) -> Site | None:
        """A result that differs, of the first region that has one."""
        outputs = [site for site in self.sites if site.is_output and site.probed]
        groups = [outputs] if outputs else []
        regions = sorted({site.region for site in outputs})[:MOST_REGIONS]
        groups += [[site for site in outputs if site.region == region] for region in regions]
        for group in groups:
            wrong = [site for site in group if self._differs(group, site)]
            if wrong:
                return wrong[0]
        return None

    def _differs(self, group: Sequence[Site], site: Site) -> bool:
        """Whether it does in a program with probes behind the whole group."""
        key = site.number if len(group) == 1 else -1 - site.number
        if key not in self._known:
            self._programs += 1
            seen, _, _ = self._probes.see(group, *self._where(), compiled=True)
            for each in group:
                own = [wrong for s in seen if s.site is each and (wrong := recomputed(s))]
                self._known[each.number if len(group) == 1 else -1 - each.number] = (
                    max(own, key=lambda wrong: wrong.apart) if own else None
                )
        return self._known[key] is not None

    def _first_of(self, target: Site) -> Site:
        """The site that differs while its operands do not, on the way to the target."""
        ancestors = [site for site in self._ancestors(target) if site.probed]
        low, high = -1, len(ancestors) - 1
        while high - low > 1:
            middle = (low + high) // 2
            if self._differs([ancestors[middle]], ancestors[middle]):
                high = middle
            else:
                low = middle
        found = ancestors[high]
        while (other := self._wrong_operand(found)) is not None:
            found = other
        return found

    def _wrong_operand(self, site: Site) -> Site | None:
        by_number = {other.number: other for other in self.sites}
        for number in site.operands:
            operand = by_number[number]
            if operand.probed and self._differs([operand], operand):
                return operand
        return None

    def _ancestors(self, site: Site) -> list[Site]:
        """Whatever leads to a site in its region, in the order of the program, itself last."""
        by_number = {other.number: other for other in self.sites}
        waiting, found = [site], {site.number}
        while waiting:
            for number in waiting.pop().operands:
                if number not in found:
                    found.add(number)
                    waiting.append(by_number[number])
        return [by_number[number] for number in sorted(found)]

    def _look_alone(
        self, site: Site, gradients: Sequence[Any]
    ) -> tuple[EquationValue | None, bool]:
        """What is seen of one site, and whether the program is still the one in question."""
        self._programs += 1
        seen, _, found = self._probes.see([site], *self._where(), compiled=True)
        same = all(np.array_equal(np.asarray(a), np.asarray(b)) for a, b in zip(gradients, found))
        wrong = [told for one in seen if (told := recomputed(one)) is not None]
        return (wrong[0] if wrong else None), same


def recomputed(seen: Seen) -> EquationValue | None:
    """What differs, bit for bit but for the sign of a zero; None if nothing does.

    XLA compiles the body of a scan on its own in either pass, and makes a product with a mask a
    choice in one of them: -0.0 there, 0.0 here. Where that sign matters, a value after it tells.
    """
    own, other = (_real(np.asarray(value)) + 0.0 for value in (seen.forward, seen.again))
    difference = first_difference(own, other)
    if difference is None:
        return None
    line = user_line(seen.site.equation)
    return EquationValue(
        primitive=seen.site.equation.primitive.name,
        source=source_of(seen.site.equation),
        line="" if line is None else line.place,
        function="" if line is None else line.function,
        region=seen.site.region + 1,
        element=difference.element,
        forward=difference.expected,
        again=difference.found,
        ulp=difference.ulp,
        apart=distance(own, other)[0],
    )


def _real(array: Any) -> Any:
    """Complex numbers as pairs; what NumPy has no dtype for in float32, which has every value."""
    if array.dtype.kind == "c":
        return np.stack([array.real, array.imag], axis=-1)
    return array if array.dtype.kind == "f" else array.astype(np.float32)
