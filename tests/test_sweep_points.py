"""Which points a sweep has: conditions, grids, keys."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from ckptcli.cli.main import run_command
from ckptcli.cli.sweep_tasks import sweep_plan
from ckptcli.errors import CkptError, UsageError
from ckptcli.options.commands.run import RunOptions
from ckptcli.options.commands.sweep import SweepOptions
from ckptcli.options.listing import built, options_of
from ckptcli.sweep.tasks import files_in, key_of
from ckptcli.sweep.where import Where

VALUES = {"n": 4, "layers": 8, "beta": 0.5, "dtype": "float32"}


@pytest.mark.parametrize(
    ("text", "holds"),
    [
        ("layers * n <= 32", True),
        ("layers * n < 32", False),
        ("2 < n <= 4 and dtype == 'float32'", True),
        ("not (n % 3 == 1 or layers // 3 == 2)", False),
        ("-beta + 1 == 2 ** -1 and dtype != 'x'", True),
    ],
)
def test_a_condition_is_what_it_says(text: str, holds: bool) -> None:
    assert Where(text).holds(VALUES) is holds


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "is no condition"),
        ("n <", "is no condition"),
        ("m < 3", "unknown name in --where"),
        ("n.real < 3", "has `n.real`, which no condition has"),
        ("__import__('os').system('true')", "which no condition has"),
        ("[n for n in n]", "which no condition has"),
        ("n in 'abc'", "which no condition has"),
        ("~n < 3", "which no condition has"),
        ("n << 3", "which no condition has"),
        ("n < 'a'", "cannot be told"),
        ("'a' * n", "`a` is no number"),
        ("n / 0 < 1", "division by zero"),
        ("9 ** 99 > n", "is reckoned with"),
        ("(9 ** 9) ** 9 ** 9 > n", "is reckoned with"),
        ("(" * 400 + "n" + ")" * 400, "--where"),
        ("n < 1 or " * 200 + "n", "characters long"),
    ],
)
def test_what_is_no_condition_is_refused(text: str, message: str) -> None:
    with pytest.raises(UsageError, match=r"(?s).*") as told:
        Where(text).holds(VALUES)
    assert message in str(told.value)


@given(st.text(alphabet="nlayersbeta()+-*/%<>=! '1234567890.,andortif\n[]:", max_size=60))
def test_any_text_ends_in_a_truth_or_a_sentence(text: str) -> None:
    with suppress(UsageError):
        assert Where(text).holds(VALUES) in (True, False)


def test_a_sweep_takes_what_a_run_takes() -> None:
    """But for how much a screen of one run says."""
    run, sweep = ({o.name for o in options_of(c)} for c in (RunOptions, SweepOptions))
    assert run - sweep == {"verbose"}


def swept(**values: object) -> list[dict[str, object]]:
    return [dict(task.point) for task in sweep_plan(built(SweepOptions, values)).tasks]


def test_points_are_the_product_of_all_lists() -> None:
    points = swept(n="16,32", layers="2..3", dtype="float32,float64")
    assert len(points) == 8
    assert points[0] == {"layers": 2, "n": 16, "dtype": "float32"}
    assert swept(n="16,32", layers="2,3", zipped=True) == [
        {"layers": 2, "n": 16},
        {"layers": 3, "n": 32},
    ]


def test_a_condition_sees_what_is_not_swept_too() -> None:
    """`batch` is `n` where it is not given."""
    where = "batch * layers <= 64 and dtype != 'float64'"
    points = swept(n="8,16,32", layers=4, dtype="float32,float64", where_text=where)
    assert points == [{"n": 8, "dtype": "float32"}, {"n": 16, "dtype": "float32"}]
    with pytest.raises(UsageError, match="leaves no point"):
        swept(n="8,16", where_text="n > 16")


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"steps": "2,3"}, "--steps has no effect on workload `silu`"),
        ({"workload_text": "chain"}, "is an experiment without strategies"),
        ({"workload_text": "silly"}, "did you mean `silu`"),
        ({"n": "1..100", "layers": "1..100", "batch": "1,2"}, "stand for 20000 programs"),
    ],
)
def test_what_cannot_be_swept_is_refused(values: dict[str, object], message: str) -> None:
    with pytest.raises(CkptError) as told:
        swept(**values)
    assert message in str(told.value)


def test_points_that_are_measured_alike_have_one_key() -> None:
    def keys(**values: object) -> list[str]:
        return [task.key for task in sweep_plan(built(SweepOptions, values)).tasks]

    alike = [keys(n="8,16"), keys(n="16,8")[::-1], keys(n="8,16", as_json=True, timeout_s=3.0)]
    assert alike[0] == alike[1] == alike[2]
    assert len(set(alike[0])) == 2
    others = [keys(n=8, reps=3), keys(n=8, memory_only=True), keys(n=8, processes=2), keys(n=8)]
    assert len({*others[0], *others[1], *others[2], *others[3]}) == 4
    assert keys(n=8)[0] == alike[0][0]


def test_a_key_knows_the_content_of_the_users_file(tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    file.write_text("a")
    assert files_in([f"{file}:make", None, "silu", f"graph:{file}#3"]) == [str(file)]
    before = key_of(["--workload", f"{file}:make"], [str(file)])
    file.write_text("b")
    assert key_of(["--workload", f"{file}:make"], [str(file)]) != before


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "has no table [ckpt]"),
        ("[ckpt]\nm = 3", "`ckpt.m` is no setting"),
        ("[ckpt]\nn = [0]", "does not take"),
        ("[ckpt]\nreps = '3'", "not an integer"),
        ("[ckpt", "not valid TOML"),
    ],
)
def test_a_wrong_grid_is_told(
    text: str, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "g.toml").write_text(text)
    assert run_command(["sweep", "--grid", str(tmp_path / "g.toml")]) == 2
    assert message in capsys.readouterr().err
