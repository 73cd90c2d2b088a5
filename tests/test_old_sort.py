"""What Burn's sort took before its fix: counts by hand, the old function itself as oracle, and the
command.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import pytest
from hypothesis import given, settings, strategies as st

from ckptcli.autodiff.device import Device
from ckptcli.autodiff.tensor import Tensor
from ckptcli.backends import open_backend
from ckptcli.checkpoint.strategies.registry import parse_strategy
from ckptcli.cli.main import run_command
from ckptcli.events import Event, NodeCreated, Recorder
from ckptcli.measure.sort_cost import SortCost
from ckptcli.profiling.old_sort import old_sort_cost, retrievals
from ckptcli.report.sort_line import sort_line, sort_object


class OldSort:
    """The old function as it was, with what it does counted."""

    def __init__(self, parents: Mapping[int, Sequence[int]], not_held: frozenset[int]) -> None:
        self.parents, self.not_held = parents, not_held
        self.visits = self.look_ups = self.comparisons = 0

    def sorted(self, node: int) -> list[int]:
        self.visits += 1
        if node not in self.not_held:
            return [node]
        result: list[int] = []
        for parent in self.parents[node]:
            for ancestor in self.sorted(parent):
                if not self.contains(result, ancestor):
                    result.append(ancestor)
        return [*result, node]

    def contains(self, result: list[int], node: int) -> bool:
        self.look_ups += 1
        for other in result:
            self.comparisons += 1
            if other == node:
                return True
        return False


def recorded(program: Callable[[Tensor], Tensor], strategy: str = "balanced") -> list[Event]:
    """The events of one pass from a leaf with a gradient, whose id is 0."""
    recorder = Recorder()
    device = Device(open_backend()).autodiff().gradient_checkpointing(parse_strategy(strategy))
    x = device.watched_by(recorder).tensor([0.5]).require_grad()
    program(x).backward()
    return recorder.events


def chain(length: int, turn: Callable[[Tensor], Tensor]) -> Callable[[Tensor], Tensor]:
    def program(x: Tensor) -> Tensor:
        for _ in range(length):
            x = turn(x)
        return x

    return program


@pytest.mark.parametrize(
    ("length", "expected"),
    [
        (1, SortCost(1, 1, 1, 0, 0)),  # x is held
        (2, SortCost(2, 3, 3, 1, 0)),  # node 1: [0] looked for in [], then x alone
        (3, SortCost(3, 5, 5, 3, 1)),  # node 2: [0, 1] looked for in [] and [0], after node 1's
        (4, SortCost(4, 7, 7, 6, 4)),  # node 3: three more look-ups, 0 + 1 + 2 comparisons
        (10, SortCost(10, 19, 19, 45, 120)),
        (100, SortCost(100, 199, 199, 4950, 161_700)),
    ],
)
def test_a_chain_is_visited_once_and_searched_quadratically(
    length: int, expected: SortCost
) -> None:
    """sin's backward asks for its operand: the first time for n nodes, then for one at a time.
    Node k's list of k + 1 ids goes into its successor's, so that n (n - 1) / 2 ids are looked for.
    """
    found = old_sort_cost(recorded(chain(length, Tensor.sin)))
    assert found == expected
    assert (found.visits, found.visits_today) == (2 * length - 1, 2 * length - 1)
    assert (found.look_ups, found.comparisons) == (math.comb(length, 2), math.comb(length, 3))


@pytest.mark.parametrize(
    ("length", "visits", "visits_today"),
    [(1, 2, 2), (2, 6, 5), (3, 12, 8), (10, 1042, 29), (16, 65566, 47)],
)
def test_squares_are_sorted_again_for_each_operand(
    length: int, visits: int, visits_today: int
) -> None:
    """y * y asks twice for y: 2^n - 1 calls the first time, then 2 n - 1 of one node."""
    found = old_sort_cost(recorded(chain(length, lambda y: y * y)))
    assert found is not None
    assert (found.visits, found.visits_today) == (visits, visits_today)
    assert found.visits == 2**length - 1 + 2 * length - 1
    assert found.visits_today == length + 2 * length - 1
    assert found.retrievals == 2 * length
    last = length - 1  # the node of the first retrieval: twice the cost of the one before, and both
    assert found.look_ups == 2 ** (last + 2) - 2 * last - 4  # its lists of `last` ids, looked for
    assert found.comparisons == 6 * 2**last - last**2 - 4 * last - 6  # in [] and in the same


@pytest.mark.slow
def test_ten_thousand_squares() -> None:
    found = old_sort_cost(recorded(chain(10_000, lambda y: y * y)))
    assert found is not None
    assert found.visits == 2**10_000 - 1 + 19_999


def test_nothing_is_sorted_where_everything_is_held() -> None:
    found = old_sort_cost(recorded(chain(10, lambda y: y * y), "none"))
    assert found == SortCost(20, 20, 20, 0, 0)


SQUARES = """
def make(device):
    x = device.tensor([0.5]).require_grad()
    def loss():
        y = x
        for _ in range(ROUNDS):
            y = y * y
        return y.sum()
    return loss
"""


@pytest.fixture
def log(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Callable[..., str]:
    """What `ckpt log` prints of so many squares."""

    def run(rounds: int, *arguments: str, code: int = 0) -> str:
        file = tmp_path / "squares.py"
        file.write_text(SQUARES.replace("ROUNDS", str(rounds)))
        assert run_command(["log", "--workload", f"{file}:make", *arguments]) == code
        captured = capsys.readouterr()
        return captured.out if code == 0 else captured.err

    return run


@pytest.mark.parametrize("strategy", ["none", "balanced"])
def test_the_log_is_the_same_and_the_count_its_last_line(
    log: Callable[..., str], strategy: str
) -> None:
    plain = log(16, "-s", strategy)
    *lines, last = log(16, "-s", strategy, "--sort", "before-5679").splitlines()
    assert "".join(f"{line}\n" for line in lines) == plain
    assert log(16, "-s", strategy, "--sort", "today") == plain
    assert last.startswith(f"# sort before-5679: {COUNTED[strategy]} in lists by ")
    assert last.endswith(" (today in a set); the same log")


COUNTED = {
    "none": "32 visits for 32 retrievals (today 32), 0 look-ups",
    "balanced": "65,566 visits for 32 retrievals (today 47), 131,038 look-ups",
}


def test_the_line_of_the_page(capsys: pytest.CaptureFixture[str]) -> None:
    """Two layers of silu: of 9 retrievals node 7 takes 2 calls, node 5 four, for node 3 twice."""
    page = Path(__file__).parents[1] / "docs" / "commands" / "log.md"
    assert run_command(["log", "--sort", "before-5679"]) == 0
    assert f"\n{capsys.readouterr().out.splitlines()[-1]}\n" in page.read_text(encoding="utf-8")


def test_json_has_the_counts(log: Callable[..., str]) -> None:
    data = json.loads(log(16, "--json", "--sort", "before-5679"))
    assert data["sort"] == {
        "rule": "before-5679",
        "retrievals": 32,
        "visits_today": 47,
        "visits": 65566,
        "look_ups": 131_038,
        "comparisons": 196_317,
        "words": log(16, "--sort", "before-5679").splitlines()[-1].removeprefix("# "),
    }
    assert "sort" not in json.loads(log(16, "--json"))


def test_counts_that_64_bits_do_not_hold(log: Callable[..., str]) -> None:
    sort = json.loads(log(100, "--json", "--sort", "before-5679"))["sort"]
    assert (sort["visits"], sort["look_ups"], sort["visits_today"]) == (None, None, 299)
    assert sort["words"].startswith("sort before-5679: about 10^30 visits for 200 retrievals")


def test_regions_are_planned_and_not_sorted(capsys: pytest.CaptureFixture[str]) -> None:
    words = "sort before-5679: this pass has regions, which are planned; no sort is asked"
    assert run_command(["log", "-n", "4", "-s", "remat", "--sort", "before-5679"]) == 0
    assert capsys.readouterr().out.splitlines()[-1] == f"# {words}"
    assert sort_object(None) == {"rule": "before-5679", "words": words}
    assert sort_line(SortCost(1, 1, 1, 1, 1)) == (
        "sort before-5679: 1 visit for 1 retrieval (today 1), 1 look-up in lists by 1 comparison "
        "(today in a set); the same log"
    )


def test_it_has_no_place_beside_diff(log: Callable[..., str]) -> None:
    error = log(2, "--diff", "none", "balanced", "--sort", "before-5679", code=2)
    assert "--diff prints no log" in error


TURNS: st.SearchStrategy[list[tuple[str, int, int]]] = st.lists(
    st.tuples(
        st.sampled_from(["mul", "add", "sin", "cos", "matmul"]),
        st.integers(0, 9),
        st.integers(0, 9),
    ),
    min_size=1,
    max_size=12,
)


@settings(max_examples=100, deadline=None)
@given(turns=TURNS, strategy=st.sampled_from(["balanced", "none"]))
def test_counts_are_those_of_the_old_function(
    turns: list[tuple[str, int, int]], strategy: str
) -> None:
    """And its order is the one that the log has."""

    def program(x: Tensor) -> Tensor:
        values = [x.reshape([1, 1])]
        for name, first, second in turns:
            a, b = values[-1 - first % len(values)], values[-1 - second % len(values)]
            values.append(getattr(a, name)() if name in ("sin", "cos") else getattr(a, name)(b))
        return sum(values[:-1], values[-1])

    events = recorded(program, strategy)
    parents = {e.node_id: e.parents for e in events if isinstance(e, NodeCreated)}
    counts = [0, 0, 0]
    for one in retrievals(events):
        old = OldSort(parents, one.not_held)
        assert old.sorted(one.order[-1]) == list(one.order)
        counts = [a + b for a, b in zip(counts, (old.visits, old.look_ups, old.comparisons))]
    found = old_sort_cost(events)
    assert found is not None
    assert [found.visits, found.look_ups, found.comparisons] == counts
