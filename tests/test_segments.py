"""Layers cut by bytes: the least peak there is, by count where layers are alike."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence

import pytest
from hypothesis import given, settings, strategies as st

from ckptcli.checkpoint.layer_bytes import LayerBytes, LayerValue, grouped
from ckptcli.checkpoint.segments import MOST_BUDGETS, even_sizes, least_peak


def chain(inside: Sequence[int], passed: Sequence[int]) -> LayerBytes:
    """Layers that each need what they make themselves, and what the layer before passes on."""
    values = [LayerValue(layer, size, layer, layer) for layer, size in enumerate(inside)]
    values += [
        LayerValue(layer, size, layer + 1, layer + 1) for layer, size in enumerate(passed[:-1])
    ]
    return LayerBytes(len(inside), values)


def all_sizes(count: int, parts: int) -> Iterator[list[int]]:
    for cuts in itertools.combinations(range(1, count), parts - 1):
        ends = [0, *cuts, count]
        yield [after - before for before, after in itertools.pairwise(ends)]


@st.composite
def chains(draw: st.DrawFn) -> LayerBytes:
    count = draw(st.integers(1, 9))
    sizes = st.lists(st.integers(0, 30), min_size=count, max_size=count)
    return chain(draw(sizes), draw(sizes))


@given(chains(), st.integers(1, 4))
@settings(max_examples=300, deadline=None)
def test_of_a_chain_no_segments_have_a_smaller_peak(layers: LayerBytes, parts: int) -> None:
    parts = min(parts, layers.count)
    found = least_peak(layers, parts)
    assert sum(found.sizes) == layers.count
    assert len(found.sizes) == parts
    assert min(found.sizes) >= 1
    peaks = [grouped(layers, sizes).peak_bytes for sizes in all_sizes(layers.count, parts)]
    spread = (max(peaks) - min(peaks)) // MOST_BUDGETS
    assert min(peaks) <= found.peak_bytes <= min(peaks) + spread


@st.composite
def webs(draw: st.DrawFn) -> LayerBytes:
    """Values that any later layer may need."""
    count = draw(st.integers(1, 8))
    values = []
    for _ in range(draw(st.integers(0, 16))):
        made = draw(st.integers(0, count - 1))
        last = draw(st.integers(made, count - 1))
        first = draw(st.none() | st.integers(made, last))
        values.append(LayerValue(made, draw(st.integers(0, 30)), first, last))
    return LayerBytes(count, values)


@given(webs(), st.integers(1, 4))
@settings(max_examples=300, deadline=None)
@pytest.mark.slow
def test_whatever_layers_pass_on_the_peak_is_at_most_that_by_count(
    layers: LayerBytes, parts: int
) -> None:
    parts = min(parts, layers.count)
    found = least_peak(layers, parts)
    by_count = grouped(layers, even_sizes(layers.count, parts))
    assert sum(found.sizes) == layers.count
    assert found.peak_bytes < by_count.peak_bytes or found == by_count


@pytest.mark.parametrize("count", [1, 2, 3, 7, 8, 10, 64, 100, 1000])
@pytest.mark.parametrize(("inside", "passed"), [(2, 1), (1, 1), (0, 5), (7, 0)])
def test_equal_layers_are_cut_by_count(count: int, inside: int, passed: int) -> None:
    parts = max(1, round(count**0.5))
    found = least_peak(chain([inside] * count, [passed] * count), parts)
    assert list(found.sizes) == even_sizes(count, parts)


def test_a_value_that_spans_segments_is_held_once() -> None:
    layers = LayerBytes(4, [LayerValue(0, 8, 1, 3), LayerValue(2, 5, 2, 2)])
    found = grouped(layers, [1, 1, 2])
    assert found.held_bytes == (8, 0, 0)
    assert found.again_bytes == (0, 0, 5)
    together = grouped(layers, [2, 2])
    assert together.held_bytes == (8, 0)
    assert together.again_bytes == (8, 5)


def test_one_large_layer_has_a_segment_of_its_own() -> None:
    found = least_peak(chain([100, 1, 1, 1, 1, 1, 1, 1, 1], [1] * 9), 3)
    assert found.sizes[0] == 1
    assert found.largest_bytes == 100
