"""Views of what was there before the pass, parameters mostly: the same in every pass, so made once.

Invariant: such a view shares the memory of an array that no pass replaces or writes into.
"""

from __future__ import annotations

from ckptcli.replay.instructions import Instruction, Recording

_VIEWS = frozenset({"matrix_transpose", "permute_dims", "reshape", "swap_dims", "take_slices"})
"""Functions that give a view where they can, of the one array among their arguments."""


def fixed_views(recording: Recording) -> dict[int, Instruction]:
    """Number of a call, those of backward behind those of forward -> the call, of each that gives a
    view of an array that was there before the pass, or of such a view.
    """
    layouts = recording.layouts
    fixed = {*recording.externals}
    memories = {layouts[number].memory for number in fixed & layouts.keys()}
    found = {}
    for index, call in enumerate((*recording.forward, *recording.backward)):
        (result, *_) = call.results
        if (
            call.function in _VIEWS
            and fixed.issuperset(call.uses())
            and result in layouts
            and result not in fixed
            and layouts[result].memory in memories
        ):
            found[index] = call
            fixed.add(result)
    return found
