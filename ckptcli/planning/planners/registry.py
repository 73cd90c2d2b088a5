"""The planners by name. A planner registers itself; its file is all that it takes."""

from __future__ import annotations

import importlib
import pkgutil
from typing import TypeVar

import ckptcli.planning.planners as package
from ckptcli.errors import UnknownNameError, UsageError
from ckptcli.planning.planners.base import Planner
from ckptcli.planning.problems.base import Problem

AUTO = "auto"

_REGISTRY: dict[str, Planner] = {}

PlannerClass = TypeVar("PlannerClass", bound=type[Planner])


def register(planner: PlannerClass) -> PlannerClass:
    """Class decorator: makes the planner known under its `keyword`."""
    _REGISTRY[planner.keyword] = planner()
    return planner


def registry() -> dict[str, Planner]:
    """Every planner by name, in the order in which `auto` asks them."""
    for module in pkgutil.iter_modules(package.__path__):
        importlib.import_module(f"{package.__name__}.{module.name}")
    late = 1 + max((p.rank for p in _REGISTRY.values() if p.rank is not None), default=0)

    def order(planner: Planner) -> tuple[int, str]:
        return (late if planner.rank is None else planner.rank, planner.keyword)

    return {planner.keyword: planner for planner in sorted(_REGISTRY.values(), key=order)}


def planners_for(name: str, problem: Problem) -> list[Planner]:
    """The planner of this name, behind the others if it starts from their plan; for `auto` all that
    take the problem.

    Raises:
        UnknownNameError: no planner has this name.
        UsageError: it is for other kinds of problem.
        MissingLibraryError: it needs a library that is not installed.
    """
    known = registry()
    able = [planner for planner in known.values() if planner.takes(problem)]
    usual = [planner for planner in able if planner.rank is not None]
    if name == AUTO:
        return usual
    if name not in known:
        raise UnknownNameError("planner", name, [AUTO, *known])
    if known[name] not in able:
        names = ", ".join(f"`{planner.keyword}`" for planner in able)
        raise UsageError(f"planner `{name}` does not take a {problem.kind}", f"use {names}")
    known[name].check_installed()
    return [*usual, known[name]] if known[name].starts_from_others else [known[name]]
