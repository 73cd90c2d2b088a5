"""One list of what is held, whatever holds it: the same table, sums and keys."""

from __future__ import annotations

from typing import Any

import pytest

from ckptcli.cli.main import run_command
from ckptcli.measure.by_hand import PartBytes
from ckptcli.measure.function_saved import Residual
from ckptcli.measure.module_saved import ModuleSaved
from ckptcli.measure.saved import SavedTensor
from ckptcli.measure.saved_list import SavedList, SavedProgram, SavedWords, saved_object
from ckptcli.report.saved_console import COLUMNS, render_saved
from ckptcli.report.screen import Screen

NODE = SavedTensor(7, "exp", (2,), "float32", 8, "net.py:3", ("9 (mul)",), None, "needed by 9", "h")
MODULE = ModuleSaved("l.0 A", ("MulBackward0",), (2,), "float32", 8, "l.0", "A", "exp", "net.py:3")
RESIDUAL = Residual("computed", (2,), "f4", 8, "exp", "jit f", "h", "n.py:3:1", "n.py:3", "loss")
SCREEN = Screen(200)


def shown(*lists: SavedList, by: str | None = None, **more: Any) -> list[str]:
    program = SavedProgram("net.py:make", lists, ("line", "name", "op"), **more)
    return render_saved(program, by, None, SCREEN).splitlines()


@pytest.mark.parametrize(
    ("entry", "heads"),
    [
        (NODE, "node size op name shape made at freed after why"),
        (MODULE, "size module op shape made at held by"),
        (RESIDUAL, "size op name shape made at function within"),
    ],
)
def test_a_table_has_the_columns_that_something_is_known_for(entry: Any, heads: str) -> None:
    lines = shown(SavedList("none", [entry]))
    assert lines[:3] == ["net.py:make", "", "none: 1 tensor, 8 B held"]
    assert " ".join(lines[4].split()) == heads
    assert len(lines) == 7


def test_every_word_of_an_entry_has_a_column() -> None:
    words = {name.replace("_", " ") for name in SavedWords.__slots__}
    assert words | {"size", "shape"} == {column.name for column in COLUMNS}


def test_sums_stand_below_where_they_say_more_than_the_list() -> None:
    other = SavedTensor(9, "mul", (2,), "float32", 4, "net.py:4", (), None, "needed by 9")
    lines = shown(SavedList("none", [NODE, NODE, other]))
    assert [line.split()[-2:] for line in lines if "share" in line] == [
        ["by", "line"],
        ["by", "name"],
    ]
    assert "16 B   80.0 %         2   net.py:3" in lines
    assert not any("share" in line for line in shown(SavedList("none", [NODE, other])))
    assert not any("share" in line for line in shown(SavedList("none", [NODE, NODE])))
    summed = shown(SavedList("none", [NODE, NODE, other]), by="op")
    assert [line.split() for line in summed[-2:]] == [
        ["16", "B", "80.0", "%", "2", "exp"],
        ["4", "B", "20.0", "%", "1", "mul"],
    ]


def test_what_takes_no_memory_is_counted_beside() -> None:
    kinds = [Residual(k, (2,), "f4", 8, "", "", "", "", "", "") for k in ("literal", "argument")]
    found = SavedList("none", [RESIDUAL, *kinds, kinds[1]])
    assert "none: 1 tensor, 8 B held; beside 2 arguments and 1 literal" in shown(found)
    assert (len(found.saved), found.saved_tensors, found.saved_bytes) == (4, 1, 8)


def test_the_program_as_it_is_is_shown_where_no_strategy_is_named() -> None:
    own = SavedList("own", [NODE])
    assert "own: 1 tensor, 8 B held" in shown(as_it_is=own)
    assert not any("own" in line for line in shown(SavedList("remat"), as_it_is=own))


def test_data_has_the_same_keys_for_all_and_a_reason_where_there_is_no_list() -> None:
    lists = [SavedList("none", [NODE], by_hand=[PartBytes("h", 8, 8, 0)])]
    lists.append(SavedList("sqrt", reason="it has no layers"))
    program = SavedProgram("n = 2", lists, ("op",), point={"n": 2})
    data = saved_object(program)
    assert list(data) == ["schema", "workload", "point", "strategies"]
    found, none = data["strategies"]
    assert none == {"strategy": "sqrt", "reason": "it has no layers"}
    assert found["by_hand"][0]["residual_bytes"] == 8
    assert found["by_op"] == [{"key": "exp", "tensors": 1, "bytes": 8, "share": 1.0}]
    own = saved_object(SavedProgram("net.py:make", [], ("op",), "module", as_it_is=lists[0]))
    assert (own["module"], own["saved_bytes"], own["strategies"]) == ("net.py:make", 8, [])


def test_a_sum_that_there_is_not_is_refused_before_anything_runs(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert run_command(["saved", "--by", "module"]) == 2
    told = capsys.readouterr()
    assert (told.out, "--by module is no sum of what is listed here" in told.err) == ("", True)
    assert "use op, line, name" in told.err
    assert run_command(["saved", "-n", "8", "-s", "none", "--by", "op", "-q"]) == 0
    assert "by op" in capsys.readouterr().out
