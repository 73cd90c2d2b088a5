"""`ckptcli.dataclass` against the standard library's, on the same class bodies."""

from __future__ import annotations

import ast
import copy
import dataclasses
import inspect
import math
import pickle
from collections.abc import Callable
from dataclasses import FrozenInstanceError, field
from pathlib import Path
from typing import Any, ClassVar

import pytest

import ckptcli.dataclass
import ckptcli.measure.rounds


def _plain() -> type:
    class Plain:
        """Two fields."""

        first: int
        second: float = 2.0

    return Plain


def _rich() -> type:
    class Rich:
        shared: ClassVar[int] = 7
        first: int
        named: str = field(default="n", kw_only=True)
        many: list[int] = field(default_factory=list)
        hidden: int = field(default=0, compare=False, repr=False)
        later: int = field(init=False)
        fixed: int = field(default=5, init=False)
        made: list[int] = field(default_factory=list, init=False)

        def __post_init__(self) -> None:
            object.__setattr__(self, "later", self.first + 1)

    return Rich


def _single() -> type:
    class Single:
        value: Any

    return Single


def _empty() -> type:
    class Empty:
        pass

    return Empty


def _own_methods() -> type:
    class Own:
        value: int

        def __eq__(self, other: object) -> bool:
            return True

        def __hash__(self) -> int:
            return 3

        def __repr__(self) -> str:
            return "own"

    return Own


FLAGS = [
    {"frozen": frozen, "slots": slots, "eq": eq}
    for frozen in (True, False)
    for slots in (True, False)
    for eq in (True, False)
]
PACKAGE = Path(ckptcli.dataclass.__file__).parent
CALLS: list[tuple[Callable[[], type], list[Callable[[Any], Any]]]] = [
    (_plain, [lambda c: c(1), lambda c: c(1, 3.0), lambda c: c(first=1, second=2.0)]),
    (_rich, [lambda c: c(1), lambda c: c(1, [2], named="m"), lambda c: c(1, hidden=9)]),
    (_single, [lambda c: c(math.nan), lambda c: c((1, 2)), lambda c: c([1])]),
    (_empty, [lambda c: c()]),
    (_own_methods, [lambda c: c(1), lambda c: c(2)]),
]


def _both(body: Callable[[], type], flags: dict[str, bool]) -> tuple[Any, Any]:
    return ckptcli.dataclass.dataclass(**flags)(body()), dataclasses.dataclass(**flags)(body())


def _outcome(what: Callable[[], Any]) -> Any:
    """What it gives, or the error as a user reads it."""
    try:
        return what()
    except (TypeError, AttributeError, ValueError) as error:
        return type(error), str(error)


@pytest.mark.parametrize("flags", FLAGS, ids=str)
@pytest.mark.parametrize(("body", "calls"), CALLS)
def test_objects_are_those_of_the_standard_library(
    body: Callable[[], type], calls: list[Callable[[Any], Any]], flags: dict[str, bool]
) -> None:
    ours, theirs = _both(body, flags)
    assert [f.name for f in dataclasses.fields(ours)] == [
        f.name for f in dataclasses.fields(theirs)
    ]
    pairs = [(call(ours), call(theirs)) for call in calls]
    for mine, other in pairs:
        assert repr(mine) == repr(other)
        assert dataclasses.asdict(mine).__repr__() == dataclasses.asdict(other).__repr__()
        assert dataclasses.is_dataclass(mine)
        if flags["eq"] or body is _own_methods:
            assert _outcome(lambda mine=mine: hash(mine)) == _outcome(
                lambda other=other: hash(other)
            )
        assert (mine == copy.copy(mine)) == (other == copy.copy(other))
        assert repr(copy.deepcopy(mine)) == repr(other)
    for mine, other in pairs:
        assert [mine == one for one, _ in pairs] == [other == one for _, one in pairs]
        assert (mine == other) == (other == mine)


@pytest.mark.parametrize("flags", FLAGS, ids=str)
@pytest.mark.parametrize(
    "call",
    [
        lambda c: c(),
        lambda c: c(1, 2, 3, 4),
        lambda c: c(1, unknown=2),
        lambda c: c(1, [], "by position"),
        lambda c: dataclasses.replace(c(1), first=5),
        lambda c: dataclasses.replace(c(1), later=5),
        lambda c: setattr(c(1), "first", 2),
        lambda c: delattr(c(1), "first"),
        lambda c: c.__match_args__,
    ],
)
def test_errors_are_those_of_the_standard_library(
    call: Callable[[Any], Any], flags: dict[str, bool]
) -> None:
    ours, theirs = _both(_rich, flags)
    mine, other = _outcome(lambda: call(ours)), _outcome(lambda: call(theirs))
    assert repr(mine) == repr(other)


@pytest.mark.parametrize("flags", FLAGS, ids=str)
def test_fields_that_are_given_by_name_alone(flags: dict[str, bool]) -> None:
    ours, theirs = _both(_plain, {**flags, "kw_only": True})
    for call in (lambda c: c(first=1), lambda c: c(second=1.0, first=2), lambda c: c(1)):
        assert repr(_outcome(lambda call=call: call(ours))) == repr(
            _outcome(lambda call=call: call(theirs))
        )


def test_no_class_of_the_package_asks_for_more() -> None:
    """Type checkers take it for the standard library's, and so for all of its parameters."""
    known = inspect.signature(ckptcli.dataclass.dataclass).parameters.keys()
    asked = {
        keyword.arg
        for path in PACKAGE.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "dataclass"
        for keyword in node.keywords
    }
    assert asked <= known


def test_a_class_of_the_program_comes_back_from_a_pickle_and_stays_frozen() -> None:
    plan = ckptcli.measure.rounds.Plan(reps=3)
    again = pickle.loads(pickle.dumps(plan))
    assert again == plan
    assert hash(again) == hash(plan)
    with pytest.raises(FrozenInstanceError, match="cannot assign to field 'reps'"):
        again.reps = 4


def test_an_object_that_holds_itself_has_a_text() -> None:
    held = ckptcli.dataclass.dataclass(slots=True)(_single())([])
    held.value.append(held)
    assert "..." in repr(held)


def test_a_subclass_has_the_fields_of_its_base_first() -> None:
    @ckptcli.dataclass.dataclass(frozen=True, slots=True)
    class Base:
        first: int

    @ckptcli.dataclass.dataclass(frozen=True, slots=True)
    class Sub(Base):
        second: int = 2

    assert Sub(1) == Sub(1, 2) != Base(1)
    assert repr(Sub(1)).endswith("Sub(first=1, second=2)")
    assert Base(3).first == 3


def test_fields_by_keyword_alone_may_follow_those_with_a_default() -> None:
    @ckptcli.dataclass.dataclass(frozen=True, slots=True, kw_only=True)
    class Base:
        first: int = 1

    @ckptcli.dataclass.dataclass(frozen=True, slots=True, kw_only=True)
    class Sub(Base):
        second: int

    assert repr(Sub(second=2)).endswith("Sub(first=1, second=2)")
    with pytest.raises(TypeError, match="takes 1 positional argument but 2 were given"):
        Sub(2)  # type: ignore[misc]
