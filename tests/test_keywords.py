"""`--set depth=4`: keywords that `MAKE` is called with, in a run and as the axes of a sweep."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, strategies as st

from ckptcli.checkpoint.user_keywords import keywords_taken, keywords_written
from ckptcli.cli.main import run_command
from ckptcli.cli.sweep_tasks import sweep_plan
from ckptcli.errors import UsageError
from ckptcli.options.commands.sweep import SweepOptions
from ckptcli.options.keywords import keyword_lists, keyword_texts, keywords_in
from ckptcli.options.listing import built
from ckptcli.sweep.folder_record import records_in
from tests.backend_kit import NEEDS_TORCH

FILE = """
import torch
from torch import nn


def make(depth=2, *, width=8, bias=True, act="Tanh"):
    part = lambda: nn.Sequential(nn.Linear(width, width, bias=bias), getattr(nn, act)())
    return nn.Sequential(*(part() for _ in range(depth))), torch.rand(4, width)


def anything(**keywords):
    return make(**keywords)


def none():
    return make()


wrapped = make
"""


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("net.py").write_text(FILE)


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("4", [4]),
        ("2,4,8", [2, 4, 8]),
        ("2..8:x2,-1", [2, 4, 8, -1]),
        ("0.5,1e-3", [0.5, 0.001]),
        ("true,false", [True, False]),
        ("gelu, relu", ["gelu", "relu"]),
        ("a=b", ["a=b"]),
        ("True,nan", ["True", "nan"]),
        ('"a,b", c', ["a,b", "c"]),
        ('"4","true",""', ["4", "true", ""]),
        (r'"say \"1..3\", \\"', ['say "1..3", \\']),
        ('a"b', ['a"b']),
    ],
)
def test_values_are_what_they_read_as(text: str, values: list[object]) -> None:
    found = keyword_lists([f"depth={text}"])["depth"]
    assert [(type(value), value) for value in found] == [(type(value), value) for value in values]


VALUES = (
    st.booleans()
    | st.integers(-(10**17), 10**17)
    | st.floats(-1e9, 1e9)
    | st.text(st.characters(exclude_categories=["Cs"], include_characters='", \\'), max_size=8)
    | st.sampled_from(["4", "1..3", "true", "a,b", " a", '"', '""', "", "\\", '\\"'])
)


@given(st.dictionaries(st.sampled_from(["depth", "width", "p"]), VALUES))
def test_texts_read_as_the_same_values(keywords: dict[str, Any]) -> None:
    assert keywords_in(keyword_texts(keywords)) == keywords


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        (["depth"], "--set depth is not NAME=VALUE"),
        (["depth="], "--set depth= is not NAME=VALUE"),
        (["de pth=2"], "is not NAME=VALUE"),
        (["lambda=2"], "is not NAME=VALUE"),
        (["depth=2", "depth=4"], "--set depth is there twice"),
        (["depth=2,2"], "--set depth=2,2: it has 2 twice"),
        (["depth=2,"], "`` is no value"),
        (['act="a,b'], "has quotes that do not end"),
        (['act="a"b,c'], "has quotes that do not end"),
    ],
)
def test_what_is_no_keyword_is_refused(texts: list[str], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        keyword_lists(texts)


def test_a_file_says_what_it_takes_as_the_function_does() -> None:
    scope: dict[str, Any] = {}
    exec(FILE.replace("import torch\nfrom torch import nn\n", ""), scope)
    for name in ("make", "anything", "none"):
        assert keywords_written(f"net.py:{name}") == keywords_taken(scope[name])
    assert keywords_written("net.py:make") == ["depth", "width", "bias", "act"]
    for unknown in ("net.py:wrapped", "net.py:absent", "absent.py:make"):
        assert keywords_written(unknown) is None
    with Path("net.py").open("a") as file:
        file.write("make = anything\n")
    assert keywords_written("net.py:make") is None


def swept(*texts: str, **values: Any) -> SweepOptions:
    return built(SweepOptions, {"module_text": "net.py:make", "keyword_texts": texts, **values})


def points(*texts: str, **values: Any) -> list[dict[str, Any]]:
    return [dict(task.point) for task in sweep_plan(swept(*texts, **values)).tasks]


def test_keywords_are_axes() -> None:
    plan = sweep_plan(swept("depth=2,4", "width=16", "bias=true,false", dtype="float32,float64"))
    assert plan.axes == ["dtype", "depth", "bias"]
    assert len(plan.tasks) == 8
    assert plan.tasks[0].point == {"dtype": "float32", "depth": 2, "bias": "true"}
    words = " ".join(plan.tasks[-1].words)
    assert "--set bias=false --set depth=4 --set width=16" in words
    assert "depth = 2,4, bias = true,false" in plan.title
    assert points("depth=2,4", "width=8,16", zipped=True) == [
        {"depth": 2, "width": 8},
        {"depth": 4, "width": 16},
    ]


def test_a_condition_sees_keywords_before_options() -> None:
    assert points("n=2,4,8", "width=8", where_text="n * width <= 32", module_text="a:b") == [
        {"n": 2},
        {"n": 4},
    ]
    assert points("depth=2", "bias=true,false", where_text="not bias") == [{"bias": "false"}]


def test_points_with_the_same_keywords_have_one_key() -> None:
    one, other = (
        {task.key for task in sweep_plan(swept(*texts)).tasks}
        for texts in (("depth=2,4", "width=8"), ("width=8", "depth=4,2"))
    )
    assert one == other
    assert len(one) == 2


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--set", "depht=2,4"), "takes no keyword `depht`, only depth, width, bias, act"),
        (("--set", "dtype=a,b", "--dtype", "float32"), "would be two axes of one name"),
        (("--set", "depth=2,4", "--workload", "silu"), "--set has no effect on workload `silu`"),
    ],
)
def test_a_sweep_of_no_keyword_is_refused(
    words: tuple[str, ...], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    module = () if "--workload" in words else ("--module", "net.py:make")
    if "--dtype" in words:
        Path("net.py").write_text("def make(dtype): ...")
    assert run_command(["sweep", *module, *words]) == 2
    assert message in capsys.readouterr().err


@pytest.mark.slow
@NEEDS_TORCH
def test_a_point_is_a_run_with_its_keywords(capsys: pytest.CaptureFixture[str]) -> None:
    """A grid; each point has the figures of a run, and its record says how to measure it again."""
    Path("g.toml").write_text(
        '[ckpt]\nmodule = "net.py:make"\nset = ["depth=2,3", "bias=false"]\nstrategy = ["none"]\n'
    )
    words = ("--memory-only", "--threads", "1", "--json", "-q")
    assert run_command(["sweep", "--grid", "g.toml", "--out", "s", *words]) == 0
    sweep = json.loads(capsys.readouterr().out)
    assert (sweep["axes"], [p["point"] for p in sweep["points"]]) == (
        ["depth"],
        [{"depth": 2}, {"depth": 3}],
    )
    assert sweep["strategies"] == ["none"]  # of one engine, which no name has
    again = ("--module", "net.py:make", "--set", "bias=false", "--set", "depth=3", "-s", "none")
    assert run_command(["run", *again, *words]) == 0
    run = json.loads(capsys.readouterr().out)
    assert run["config"]["keyword_texts"] == ["bias=false", "depth=3"]
    assert "bias = false, depth = 3" in run["workload"]["title"]
    point = sweep["points"][1]["rows"][0]
    assert point["saved_bytes"] == run["strategies"][0]["saved_bytes"]
    (record,) = records_in(Path("s")).values()
    assert [dict(program.point) for program in record.programs] == [{"depth": 2}, {"depth": 3}]


@pytest.mark.slow
@NEEDS_TORCH
@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("make", "depht=2"), "takes no keyword `depht`, only depth, width, bias, act"),
        (("none", "depth=2"), "`net.py:none` takes no keyword, so not `depth`"),
        (("make", "depth=2,4"), "--set depth has 2 values where one program has one"),
    ],
)
def test_a_run_names_what_make_takes(
    words: tuple[str, str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_command(["run", "--module", f"net.py:{words[0]}", "--set", words[1]]) == 2
    assert message in capsys.readouterr().err
