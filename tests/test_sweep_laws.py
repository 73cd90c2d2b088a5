"""Laws: exact polynomials against ones that are known, times against laws that made them."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from itertools import product

import pytest
from hypothesis import given, settings, strategies as st

from ckptcli.autodiff.device import Device
from ckptcli.backends import open_backend
from ckptcli.checkpoint.strategies.registry import parse_strategy
from ckptcli.measure.analysis import analysed
from ckptcli.measure.origin import Origin
from ckptcli.measure.rounds import Sample
from ckptcli.measure.row import Passes
from ckptcli.profiling.memory_pass import memory_pass
from ckptcli.report.law_lines import law_lines
from ckptcli.report.sweep_chart import panels
from ckptcli.report.sweep_table import sentences, tables
from ckptcli.sweep.laws.of_sweep import ByteLaw, Found, Laws, TimeLaw, byte_laws, laws_of
from ckptcli.sweep.laws.polynomial import recovered
from ckptcli.sweep.laws.power import crossing, fitted, student
from ckptcli.sweep.result import PointResult, SweepResult
from ckptcli.workloads.silu import SiluWorkload
from tests.records import none_record, run_record

Terms = dict[tuple[int, ...], Fraction]


def value(terms: Terms, place: tuple[int, ...]) -> int:
    return int(sum(c * math.prod(v**e for v, e in zip(place, es)) for es, c in terms.items()))


exponents = st.tuples(st.integers(0, 2), st.integers(0, 2)).filter(lambda e: sum(e) <= 3)
polynomials = st.dictionaries(exponents, st.integers(-50, 50).filter(bool), min_size=1, max_size=5)


@settings(max_examples=40)
@given(polynomials)
def test_a_polynomial_is_recovered_to_its_last_term(whole: dict[tuple[int, ...], int]) -> None:
    terms = {e: Fraction(c) for e, c in whole.items()}
    known = {(n, m): value(terms, (n, m)) for n in (1, 2, 3, 5, 8) for m in (1, 2, 4, 7, 9)}
    found = recovered(("n", "m"), known)
    assert found is not None
    assert dict(found.polynomial.terms) == terms
    assert found.made_of + found.held_at == len(known)
    assert found.polynomial.at((100, 30)) == value(terms, (100, 30))


@settings(max_examples=40)
@given(polynomials, st.integers(0, 24), st.sampled_from([-1, 1]))
def test_one_byte_off_at_one_place_is_no_law(
    whole: dict[tuple[int, ...], int], at: int, off: int
) -> None:
    terms = {e: Fraction(c) for e, c in whole.items()}
    known = {(n, m): value(terms, (n, m)) for n in (1, 2, 3, 5, 8) for m in (1, 2, 4, 7, 9)}
    known[list(known)[at]] += off
    assert recovered(("n", "m"), known) is None


def test_as_many_places_as_coefficients_prove_nothing() -> None:
    assert recovered(("n",), {(1,): 5, (2,): 11, (4,): 3}) is None
    assert recovered(("n",), {(3,): 5}) is None
    found = recovered(("n",), {(2,): 6, (3,): 11, (5,): 27})
    assert found is None or found.held_at > 0


@settings(max_examples=15, deadline=None)
@given(st.lists(st.integers(1, 10**6), min_size=3, max_size=3, unique=True))
def test_three_values_of_a_size_prove_no_parabola_in_it(factors: list[int]) -> None:
    """However many values the other size has: what goes in steps would seem a law."""
    known = {(n, k): factors[k - 3] * n**2 for n in range(8, 48, 8) for k in (3, 4, 5)}
    found = recovered(("n", "layers"), known)
    assert found is None or factors[2] - factors[1] == factors[1] - factors[0]
    laws = byte_laws(("n", "layers"), known)
    assert found is not None or [where for where, _, _ in laws] == [
        [f"layers = {k}"] for k in (3, 4, 5)
    ]


def test_a_fraction_is_one() -> None:
    """n (n + 1) / 2."""
    found = recovered(("n",), {(n,): n * (n + 1) // 2 for n in range(1, 7)})
    assert found is not None
    assert found.polynomial.text == "1/2 n^2 + 1/2 n"


def ledger_peak(strategy: str, layers: int, n: int, batch: int) -> int:
    workload = SiluWorkload(layers, n, batch)
    device = Device(open_backend("numpy"))
    memory = memory_pass(workload, device, parse_strategy(strategy), workspace=False).memory
    assert memory.ledger_peak_bytes is not None
    return memory.ledger_peak_bytes


@pytest.mark.parametrize(
    ("strategy", "law"),
    [
        ("none", "12 layers n batch + 4 layers n^2 + 4 n batch + 8"),
        ("balanced", "4 layers n batch + 4 layers n^2 + 12 n batch + 4 n^2 + 4"),
        ("remat", "4 layers n batch + 4 layers n^2 + 12 n batch + 4 n^2 + 4"),
    ],
)
def test_the_peak_of_the_silu_network_is_known_from_a_third_of_the_points(
    strategy: str, law: str
) -> None:
    """Weights and what is held grow with the layers, the rest does not: bytes of float32."""
    places = [(k, n, b) for k in range(2, 6) for n in (4, 8, 12, 16) for b in (16, 24, 32, 40)]
    known = {place: ledger_peak(strategy, *place) for place in places}
    found = recovered(("layers", "n", "batch"), known)
    assert found is not None
    assert sorted(found.polynomial.text.split(" + ")) == sorted(law.split(" + "))
    assert found.made_of * 3 <= len(places)


def test_sqrt_steps_and_has_a_law_for_each_number_of_layers() -> None:
    known = {(n, k): ledger_peak("sqrt", k, n, n) for n in (4, 8, 12, 16) for k in range(2, 11)}
    found = byte_laws(("n", "layers"), known)
    assert [where for where, _, _ in found] == [[f"layers = {k}"] for k in range(2, 11)]
    assert all(law is not None and law.held_at == 1 for _, _, law in found)


def test_a_law_may_begin_later() -> None:
    """One layer has nothing to recompute."""
    known = {(k, n): ledger_peak("balanced", k, n, n) for k in range(1, 7) for n in (4, 8, 12, 16)}
    ((where, _, law),) = byte_laws(("layers", "n"), known)
    assert where == ["layers >= 2"]
    assert law is not None
    assert law.polynomial.text == "8 layers n^2 + 16 n^2 + 4"


def test_no_law_goes_on_from_a_single_value() -> None:
    """Of two depths a line in the depth is unknown: each has a law, and none goes beyond it."""
    known = {(k, b): 768 * k * b for k in (2, 3) for b in (16, 32, 64)}
    found = byte_laws(("depth", "batch"), known)
    texts = [(where, law.polynomial.text) for where, _, law in found if law is not None]
    assert texts == [(["depth = 2"], "1536 batch"), (["depth = 3"], "2304 batch")]
    assert [line.partition(":")[2] for line in law_lines(Laws([_saved(found[0])]))] == [
        " depth = 2: saved = 1536 batch B: from 2 points, exact at 1 other"
    ]


def _saved(found: Found) -> ByteLaw:
    where, names, law = found
    return ByteLaw("saved_bytes", "none", where, names, law, 6)


def test_times_that_follow_a_law_give_it_back() -> None:
    known = {(n, k): 2e-9 * n**2.5 * k for n in (16.0, 64.0, 256.0) for k in (2.0, 8.0)}
    law = fitted(("n", "layers"), known)
    assert law is not None
    assert [round(e, 9) for e in law.exponents] == [2.5, 1.0]
    assert law.factor_s == pytest.approx(2e-9)
    far = law.at((1024.0, 4.0))
    assert far.is_extrapolated
    assert far.time_s == pytest.approx(2e-9 * 1024**2.5 * 4)
    assert not law.at((64.0, 8.0)).is_extrapolated


def test_the_interval_holds_a_new_time_as_often_as_it_says() -> None:
    """Six noisy times make a law, a seventh is to be in its interval: 95 % of 2,000."""
    drawn = random.Random(7)
    held = held_exponents = 0
    for _ in range(2000):
        known = {(n,): n**2.0 * math.exp(drawn.gauss(0, 0.05)) for n in (1.0, 2, 4, 8, 16, 32)}
        law = fitted(("n",), known)
        assert law is not None
        found = law.at((64.0,))
        ((low, high),) = law.intervals
        held_exponents += low <= 2.0 <= high
        held += found.low_s <= 64.0**2 * math.exp(drawn.gauss(0, 0.05)) <= found.high_s
    assert 0.93 <= held / 2000 <= 0.97
    assert 0.93 <= held_exponents / 2000 <= 0.97


def test_what_determines_no_law_gives_none() -> None:
    assert fitted(("n",), {(1.0,): 1.0, (2.0,): 2.0}) is None
    assert fitted(("n",), {(0.0,): 1.0, (2.0,): 2.0, (3.0,): 1.0}) is None
    assert fitted(("n", "m"), {(n, n): n for n in (1.0, 2.0, 3.0, 4.0)}) is None


def test_laws_meet_where_they_are_equal() -> None:
    slow = fitted(("n",), {(n,): 1e-6 * n**2 for n in (8.0, 16.0, 32.0)})
    fast = fitted(("n",), {(n,): 1e-4 * n for n in (8.0, 16.0, 32.0)})
    assert slow is not None
    assert fast is not None
    assert crossing(slow, fast) == pytest.approx(100.0)
    assert crossing(slow, slow) is None


def test_laws_of_two_sizes_meet_for_each_value_of_the_other() -> None:
    """1e-6 n^2 layers and 1e-4 n layers^2 are the same at n = 100 layers."""
    places = [(n, k) for n in (32.0, 64.0, 128.0, 256.0) for k in (1.0, 2.0, 4.0)]
    first = fitted(("n", "layers"), {(n, k): 1e-6 * n**2 * k for n, k in places})
    second = fitted(("n", "layers"), {(n, k): 1e-4 * n * k**2 for n, k in places})
    assert first is not None
    assert second is not None
    for layers in (1.0, 4.0):
        found = crossing(first, second, 0, {"layers": layers})
        assert found == pytest.approx(100.0 * layers)


def times_of(**laws: Callable[[int, int], float]) -> SweepResult:
    """A sweep over n and layers of strategies whose times are known."""
    points = []
    for n, layers in product((32, 64, 128), (1, 2, 4)):
        half_s = {name: law(n, layers) / 2 for name, law in laws.items()}
        rows = [
            replace(none_record(), strategy=name, passes=Passes((), (Sample(s, s),) * 6))
            for name, s in half_s.items()
        ]
        record = analysed(run_record(*rows))
        points.append(PointResult(f"{n} {layers}", {"n": n, "layers": layers}, record))
    return SweepResult("silu", ("n", "layers"), points)


def test_strategies_cross_at_the_ends_of_the_other_size_and_not_far_away() -> None:
    sweep = times_of(none=lambda n, k: 1e-6 * n**2 * k, remat=lambda n, k: 1e-4 * n * k**2)
    found = laws_of(sweep).crossovers
    assert [(c.slower_above, c.other, c.name, list(c.where)) for c in found] == [
        ("none", "remat", "n", ["layers = 1"]),
        ("none", "remat", "n", ["layers = 4"]),
    ]
    assert [c.value for c in found] == [pytest.approx(100), pytest.approx(400)]
    assert [c.is_extrapolated for c in found] == [False, True]
    far = times_of(none=lambda n, k: 1e-6 * n**2, remat=lambda n, k: 1e-1 * n)
    assert laws_of(far).crossovers == []


def test_times_that_tell_nothing_are_said_to() -> None:
    """Three times with no order in them; they cross nothing."""
    times = {8: 1.0, 16: 4.0, 32: 2.0}
    law = fitted(("n",), {(float(n),): time_s for n, time_s in times.items()})
    assert law is not None
    assert not law.is_told
    (line,) = law_lines(Laws(of_times=[TimeLaw("none", [], law)]))
    assert line.startswith("none: total time follows no law that these points tell, n^")
    assert fitted(("n",), {(float(n),): n**1.5 for n in times}).is_told  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("degrees", "quantile"), [(1, 12.706), (10, 2.228), (20, 2.086), (60, 2.0)]
)
def test_students_quantiles(degrees: int, quantile: float) -> None:
    """From the tables."""
    assert student(degrees) == pytest.approx(quantile, abs=1e-3)


def timed_sweep(*hosts: str) -> SweepResult:
    """One strategy whose time is 1 ms * n, at n = 8, 16, ... on one host after another."""
    points = []
    for position, size in enumerate((8, 16, 32, 64)):
        samples = tuple(Sample(5e-4 * size, 5e-4 * size) for _ in range(6))
        record = analysed(run_record(replace(none_record(), passes=Passes((), samples))))
        host = hosts[position % len(hosts)]
        origin = Origin("2026-01-01T00:00:00Z", host, None, None)
        found = replace(record, origin=origin)
        points.append(PointResult(str(size), {"n": size}, found))
    return SweepResult("silu", ("n",), points)


def test_times_of_several_machines_have_no_law_unless_asked() -> None:
    (law,) = laws_of(timed_sweep("a")).of_times
    assert law.law.exponents[0] == pytest.approx(1.0)
    several = timed_sweep("a", "b")
    assert list(several.machines.values()) == ["a", "b"]
    assert laws_of(several).of_times == []
    assert len(laws_of(several, any_machine=True).of_times) == 1
    assert any("times of two of them are not to be compared" in line for line in sentences(several))
    (times, _) = [table for table in tables(several) if "time" in table.title]
    assert times.header == ["n", "machine", "none"]
    assert [row[1].text for row in times.rows] == ["a", "b", "a", "b"]
    (_, panel) = panels(several)
    assert [(line.name, [x for x, _ in line.points]) for line in panel.lines] == [
        ("none, a", [8, 32]),
        ("none, b", [16, 64]),
    ]


def test_machines_of_one_name_are_told_apart() -> None:
    """Containers are often called alike: the processor tells."""
    points = timed_sweep("a").points
    record = points[0].record
    assert record is not None
    other = replace(record, machine=replace(record.machine, cpu="another", cores=3))
    several = SweepResult("silu", ("n",), [replace(points[0], record=other), *points[1:]])
    assert several.machines["a, another, 3 cores"] == "a, another, 3 cores"
    assert len(several.machines) == 2
    assert laws_of(several).of_times == []


def test_a_figure_that_no_row_has_gets_no_table() -> None:
    """As what is computed again of a module whose shapes alone are known."""
    sweep = timed_sweep("a")
    assert "recomputed" in [table.title for table in tables(sweep)]
    for place, point in enumerate(sweep.points):
        assert point.record is not None
        rows = [replace(row, outcome=None) for row in point.record.rows]
        sweep.points[place] = replace(point, record=replace(point.record, rows=rows))
    titles = [table.title for table in tables(sweep)]
    assert "total time" in titles
    assert "recomputed" not in titles
