"""How policies are written: what a name may be, and that no text is a traceback."""

from __future__ import annotations

import pytest
from hypothesis import given, settings, strategies as st

from ckptcli.checkpoint.policies import (
    described,
    dots_saveable,
    everything_saveable,
    parse_policy,
    save_and_offload_only_these_names,
    save_any_names_but_these,
    save_from_both_policies,
    save_only_these_names,
)
from ckptcli.checkpoint.policies.grammar import MOST_NESTED, split_outside_brackets
from ckptcli.checkpoint.policies.registry import registry
from ckptcli.checkpoint.strategies.registry import parse_strategy
from ckptcli.errors import CkptError, UnknownNameError, UsageError


@pytest.mark.parametrize(
    ("written", "names"),
    [
        ("a", ["a"]),
        ("a,b , c", ["a", "b", "c"]),
        ("a,,b,", ["a", "b"]),
        (",a", ["a"]),
        ("block.0.h", ["block.0.h"]),
        ("my-name, layer/2, a b", ["my-name", "layer/2", "a b"]),
        ("0, 1e3, 007", ["0", "1e3", "007"]),
        ("None, class, *x, k=v", ["None", "class", "*x", "k=v"]),
        ("grün, ﬁ, 名", ["grün", "ﬁ", "名"]),
        ("don't, it's", ["don't", "it's"]),
        ("a\\b, a\nb, #c", ["a\\b", "a\nb", "#c"]),
        ("f(x)", ["f(x)"]),
        ("f(x.0,y)", ["f(x.0,y)"]),
        ("a|b", ["a|b"]),
        ("'a', \"b\"", ["a", "b"]),
        ("'a,b', 'c)', '(d', 'e|f'", ["a,b", "c)", "(d", "e|f"]),
        (r"'it\'s', '\d'", ["it's", "d"]),
    ],
)
def test_what_a_name_may_be(written: str, names: list[str]) -> None:
    assert parse_policy(f"save_only_these_names({written})") == save_only_these_names(*names)
    assert parse_policy(f"save_any_names_but_these({written})") == save_any_names_but_these(*names)


@pytest.mark.parametrize(
    ("written", "saved", "offloaded"),
    [
        ("|b", [], ["b"]),
        ("a.0 | b-1", ["a.0"], ["b-1"]),
        ("a,b|c,d", ["a", "b"], ["c", "d"]),
        ("a, | b,", ["a"], ["b"]),
        ("'a|b' | c", ["a|b"], ["c"]),
        ("a|b|c", ["a"], ["b|c"]),
    ],
)
def test_two_lists_of_names(written: str, saved: list[str], offloaded: list[str]) -> None:
    policy = parse_policy(f"save_and_offload_only_these_names({written})")
    assert policy == save_and_offload_only_these_names(saved, offloaded)


def test_a_policy_in_a_policy_may_be_quoted_or_of_a_file(tmp_path) -> None:  # type: ignore[no-untyped-def]
    path = tmp_path / "mine.py"
    path.write_text("def sines(value):\n    return value.op == 'sin'\n")
    policy = parse_policy(f"save_from_both_policies('dots_saveable', {path}:sines)")
    first, second = policy.first, policy.second  # type: ignore[attr-defined]
    assert first == dots_saveable
    assert second.__name__ == "sines"


def nested(depth: int) -> str:
    opening = "save_from_both_policies(dots_saveable," * depth
    return f"{opening}everything_saveable{')' * depth}"


def test_how_deep_policies_nest() -> None:
    assert described(parse_policy(nested(MOST_NESTED))).names() == set()
    with pytest.raises(UsageError, match="more than 50 brackets"):
        parse_policy(nested(MOST_NESTED + 1))


@pytest.mark.parametrize(
    "text",
    [
        "save_only_these_names" + "(" * 100_000,
        "save_only_these_names(" * 20_000,
        "save_only_these_names" + ")" * 100_000,
        "save_only_these_names(" + "a|" * 100_000 + "b)",
        "save_and_offload_only_these_names(" + "|" * 5_000 + ")",
        "save_only_these_names(" + "(a)|" * 100_000 + "b)",
        "dots_saveable" + "()" * 100_000,
        "save_only_these_names(" + "()" * 100_000 + ")",
        "save_only_these_names(" + "a|" * 150 + "b" + "()" * 40 + "|" * 100 + ")",
        "save_only_these_names('" + "x" * 100_000,
        "save_only_these_names(\0)x",
        "dots_saveable\0",
        "dots_saveable()()",
        "dots_saveable()|x",
        "save_only_these_names(a),",
        "save_from_both_policies(dots_saveable,(everything_saveable,dots_saveable))",
        "save_from_both_policies(dots_saveable,dots_saveable()())",
        "x" * 100_000,
        "dots_saveable:\ud800",
    ],
)
def test_hostile_texts_are_refused(text: str) -> None:
    with pytest.raises(UsageError) as error:
        parse_policy(text)
    assert len(str(error.value)) < 1_000 or isinstance(error.value, UnknownNameError)


def test_a_long_list_is_a_list() -> None:
    names = [f"layer.{i}" for i in range(20_000)]
    assert parse_policy(f"save_only_these_names({','.join(names)})") == (
        save_only_these_names(*names)
    )


MARKS = st.sampled_from([*"(),|'\"\\ \n\0", *registry(), "a", "block.0", "é", "\ud800", "lambda:"])


@settings(deadline=None)
@given(st.lists(MARKS).map("".join) | st.text())
def test_any_text_is_a_policy_or_an_error(text: str) -> None:
    for written in (text, *(f"{name}({text})" for name in registry()), f"({text})"):
        try:
            policy = parse_policy(written)
        except CkptError:
            continue
        assert callable(policy)
        assert all(isinstance(name, str) for name in described(policy).names())


@settings(deadline=None)
@given(st.lists(st.text(st.characters(exclude_characters="(),|'\"\\"), min_size=1).map(str.strip)))
def test_any_name_without_marks_is_taken_as_it_is(names: list[str]) -> None:
    names = [name for name in names if name]
    policy = parse_policy(f"save_any_names_but_these({', '.join(names)})")
    assert policy == save_any_names_but_these(*names)


def test_quotes_hold_what_stands_in_them_together_in_a_strategy() -> None:
    assert split_outside_brackets("a='x,y',b=(c,d),e") == ["a='x", "y'", "b=(c,d)", "e"]
    regions = parse_strategy("remat:policy=save_only_these_names('a)b',c),every=2").layer_regions(4)
    assert regions is not None
    assert [region.size for region in regions] == [2, 2]
    assert regions[0].policy == save_only_these_names("a)b", "c")


def test_a_union_says_what_its_parts_say() -> None:
    union = save_from_both_policies(
        save_only_these_names("a"), save_and_offload_only_these_names(["b"], ["c"])
    )
    assert union.names() == {"a", "b", "c"}
    assert union.moves_to_host
    assert not save_from_both_policies(everything_saveable, lambda _: "offload").moves_to_host
