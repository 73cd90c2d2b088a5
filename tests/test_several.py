"""Lists where one value stands: the grammar, the points that they make, and who takes them."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from ckptcli.cli.main import run_command
from ckptcli.errors import UsageError
from ckptcli.options.listing import options_of
from ckptcli.options.points import MOST_POINTS, combined, number, points, whole
from ckptcli.options.several import MOST_VALUES, numbers, whole_numbers, words
from ckptcli.options.workload import WorkloadOptions
from ckptcli.workloads.registry import open_workloads

NAMES = frozenset(option.name for option in options_of(WorkloadOptions))

parts = st.one_of(
    st.integers(0, 10**6).map(lambda n: (str(n), [n])),
    st.tuples(st.integers(0, 10**6), st.integers(0, 20)).map(
        lambda pair: (f"{pair[0]}..{pair[0] + pair[1]}", list(range(pair[0], sum(pair) + 1)))
    ),
)
blanks = st.sampled_from(["", " ", "  "])


@given(st.lists(st.tuples(blanks, parts, blanks), min_size=1, max_size=8))
def test_a_text_is_the_values_of_its_parts_in_order(
    drawn: list[tuple[str, tuple[str, list[int]], str]],
) -> None:
    text = ",".join(f"{before}{part}{after}" for before, (part, _), after in drawn)
    expected = [value for _, (_, values), _ in drawn for value in values]
    if len(expected) > MOST_VALUES:
        with pytest.raises(ValueError, match=f"more than {MOST_VALUES} values"):
            whole_numbers(text)
    elif len(set(expected)) < len(expected):
        with pytest.raises(ValueError, match="twice"):
            whole_numbers(text)
    else:
        assert whole_numbers(text) == expected


@given(
    st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1, max_size=20, unique=True)
)
def test_numbers_are_read_as_they_are_written(values: list[float]) -> None:
    assert numbers(",".join(map(repr, values))) == values


@given(st.text(alphabet="0123456789.,x:+-e ", max_size=12))
def test_any_other_text_is_refused_in_a_sentence(text: str) -> None:
    for read in (whole_numbers, numbers):
        complaint, found = "", []
        try:
            found = read(text)
        except ValueError as error:
            complaint = str(error)
        assert bool(found) != bool(complaint)
        assert len({*found}) == len(found)
        assert "\n" not in complaint
        assert complaint == "" or complaint.startswith(("`", "it has "))


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("64..4096:x2", [64, 128, 256, 512, 1024, 2048, 4096]),
        ("3..40:x3,100", [3, 9, 27, 100]),
        ("8..30:+8", [8, 16, 24]),
        ("5..5:x2", [5]),
    ],
)
def test_a_range_may_have_a_step_or_a_factor(text: str, values: list[int]) -> None:
    assert whole_numbers(text) == values


@pytest.mark.parametrize("text", ["1..8:x1", "0..8:x2", "1..8:+0", "9..8:x2", "1..8:*2", "1..8:x"])
def test_a_range_that_does_not_go_on_is_none(text: str) -> None:
    with pytest.raises(ValueError, match="is no whole number and no range that goes up"):
        whole_numbers(text)


def test_words_stand_between_commas() -> None:
    assert words("float32, float64") == ["float32", "float64"]
    for text in ("", "a,", "a,a"):
        with pytest.raises(ValueError, match=r"is no word|has a twice"):
            words(text)


def test_lists_are_multiplied_or_zipped() -> None:
    lists = {"n": [1, 2], "dtype": ["a", "b"], "seed": [7]}
    assert combined(lists, zipped=True) == [
        {"n": 1, "dtype": "a", "seed": 7},
        {"n": 2, "dtype": "b", "seed": 7},
    ]
    assert [p["n"] for p in combined(lists)] == [1, 1, 2, 2]
    with pytest.raises(UsageError, match="these have n 2, dtype 3 values"):
        combined({"n": [1, 2], "dtype": ["a", "b", "c"]}, zipped=True)


@pytest.mark.parametrize("text", ["1..999999999", "0..100", ",".join(map(str, range(101)))])
def test_a_list_ends(text: str) -> None:
    with pytest.raises(ValueError, match="more than 100 values"):
        whole_numbers(text)


@pytest.mark.parametrize("text", ["", "1,", ",", "5..3", "1...3", "..3", "3..", "1..2..3", "0x1"])
def test_what_is_no_list_of_whole_numbers(text: str) -> None:
    with pytest.raises(ValueError, match="is no whole number and no range that goes up"):
        whole_numbers(text)


@pytest.mark.parametrize("text", ["", "1_0", "inf", "nan", "0x1", "1 2", "\u0663", "1e999"])
def test_what_is_no_list_of_numbers(text: str) -> None:
    with pytest.raises(ValueError, match="is no number"):
        numbers(text)


# Points.

lists = st.lists(st.integers(1, 50), min_size=1, max_size=4, unique=True)


@given(lists, lists, lists)
def test_lists_give_their_product(layers: list[int], n: list[int], chi: list[int]) -> None:
    options = WorkloadOptions(
        layers=",".join(map(str, layers)), n=",".join(map(str, n)), chi=",".join(map(str, chi))
    )
    found = points(options, {"layers", "n"})
    assert [(point.options.layers, point.options.n) for point in found] == [
        (a, b) for a in layers for b in n
    ]
    for point in found:
        assert point.options.chi == options.chi, "what the workload does not use stays a list"
        several = {"layers": layers, "n": n}
        assert list(point.values) == [name for name, of in several.items() if len(of) > 1]
        for name, value in point.values.items():
            assert getattr(point.options, name) == value


def test_without_lists_there_is_one_point() -> None:
    (point,) = points(WorkloadOptions(beta=0.5), NAMES)
    assert (point.values, point.options) == ({}, WorkloadOptions(beta=0.5))


def test_a_list_of_one_value_varies_nothing() -> None:
    (point,) = points(WorkloadOptions(layers="4..4"), NAMES)
    assert (point.values, point.options.layers) == ({}, 4)


def test_a_product_ends() -> None:
    with pytest.raises(UsageError, match="lists of layers and n stand for 2500 programs") as caught:
        points(WorkloadOptions(layers="1..50", n="1..50"), NAMES)
    assert f"at most {MOST_POINTS}" in str(caught.value)


def test_an_opener_takes_one_value() -> None:
    assert (whole(3), number(0.5)) == (3, 0.5)
    for read in (whole, number):
        with pytest.raises(UsageError, match="`3,4` is a list"):
            read("3,4")


def test_a_workload_is_opened_for_each_point() -> None:
    options = WorkloadOptions(layers="1,2", n="4,8", beta="0.3,0.4")
    assert [opened.title for opened in open_workloads("silu", options)] == [
        f"n = {n}, layers = {layers}" for layers in (1, 2) for n in (4, 8)
    ]
    assert [opened.title for opened in open_workloads("trg", options)] == [
        f"steps = 20, chi = 16, beta = {beta}" for beta in (0.3, 0.4)
    ]


def test_a_wrong_text_names_the_option() -> None:
    with pytest.raises(UsageError, match="--layers is `1,x`: `x` is no whole number"):
        open_workloads("silu", WorkloadOptions(layers="1,x"))


# The commands.

Printed = Callable[..., str]


@pytest.fixture
def printed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Printed:
    monkeypatch.chdir(tmp_path)

    def call(*words: str, code: int = 0) -> str:
        assert run_command(words) == code
        captured = capsys.readouterr()
        return captured.out if code == 0 else captured.err

    return call


def test_check_takes_lists(printed: Printed) -> None:
    lines = map(json.loads, printed("check", "-l", "1,2", "-n", "4", "--json").splitlines())
    assert [(line["workload"], line["point"]) for line in lines] == [
        ("n = 4, layers = 1", {"layers": 1}),
        ("n = 4, layers = 2", {"layers": 2}),
    ]
    assert "point" not in json.loads(printed("check", "-l", "1", "-n", "4", "--json"))


def test_saved_takes_lists(printed: Printed) -> None:
    lines = printed("saved", "-l", "1..3", "-n", "4", "-s", "none", "--json").splitlines()
    found = [json.loads(line) for line in lines]
    assert [line["strategies"][0]["saved_tensors"] for line in found] == [2, 5, 8]
    assert [line["point"] for line in found] == [{"layers": layers} for layers in (1, 2, 3)]
    text = printed("saved", "-l", "1,2", "-n", "4", "-s", "none")
    assert "n = 4, layers = 1\n" in text
    assert "n = 4, layers = 2\n" in text
    assert "point" not in json.loads(printed("saved", "-l", "2", "-n", "4", "--json"))


def test_log_takes_lists(printed: Printed) -> None:
    one = printed("log", "-l", "1", "-n", "4")
    two = printed("log", "-l", "2", "-n", "4")
    device = "device = Device<Autodiff { device: Numpy(Cpu), checkpointing: Balanced }>"
    assert printed("log", "-l", "1,2", "-n", "4") == (
        f"{device}, n = 4, layers = 1\n{one}{device}, n = 4, layers = 2\n{two}"
    )
    lines = printed("log", "-l", "1,2", "-n", "4", "--json").splitlines()
    assert [json.loads(line)["point"] for line in lines] == [{"layers": 1}, {"layers": 2}]
    assert "point" not in printed("log", "-l", "1", "-n", "4", "--json")
    difference = printed("log", "-l", "1,2", "-n", "4", "--diff", "none", "balanced")
    assert difference.count("n = 4, layers = ") == 2


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (("-l", "4,"), "in `4,`, `` is no whole number"),
        (("-l", "4,4"), "in `4,4`, it has 4 twice"),
        (("-l", "0,1"), "0 is not in the range"),
        (("-n", "8..4"), "`8..4` is no whole number and no range that goes up, such as 1..8"),
        (("--workload", "trg", "--beta", "0.3,nan"), "`nan` is no number"),
        (("--workload", "trg", "--beta", "0.3..0.5"), "`0.3..0.5` is no number"),
        (("-l", "1..20", "-n", "1..20"), "the lists of layers and n stand for 400 programs"),
    ],
)
def test_a_wrong_list_is_refused(printed: Printed, words: tuple[str, ...], complaint: str) -> None:
    for command in ("check", "saved", "log", "run"):
        assert complaint in printed(command, *words, code=2)


def test_a_list_without_effect_is_told_and_makes_no_points(
    printed: Printed, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_command(["log", "-l", "1", "-n", "4", "--beta", "0.3,0.4"]) == 0
    captured = capsys.readouterr()
    assert "device = " not in captured.out
    assert "--beta has no effect on workload `silu`" in captured.err


def test_a_file_and_a_variable_may_have_a_list(
    printed: Printed, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "burn.toml").write_text('[ckpt]\nlayers = "1,2"\nn = 4\n')
    assert len(printed("check", "--json").splitlines()) == 2
    monkeypatch.setenv("CKPT_LAYERS", "1..3")
    assert len(printed("check", "--json").splitlines()) == 3
