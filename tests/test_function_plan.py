"""`ckpt plan --function`: the search over what is traced and compiled, and pasted code in JAX."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ckptcli.cli.main import run_command
from ckptcli.planning.functions.search import (
    MOST_COMPILED,
    MOST_TRACED,
    Candidate,
    Found,
    NoSuchProgram,
    Point,
    Traced,
    search,
)
from tests.backend_kit import NEEDS_JAX

FILE = """
import jax
import jax.numpy as jnp
from jax.ad_checkpoint import checkpoint_name


def layer(w, h):
    up = checkpoint_name(h @ w["up"], "up")
    return h + checkpoint_name(jnp.tanh(jnp.sin(up)) @ w["down"], "down")


def make():
    key = jax.random.key(0)
    shapes = {"up": (6, 16, 64), "down": (6, 64, 16)}
    params = {name: jax.random.normal(key, shape) / 8 for name, shape in shapes.items()}

    def loss(params, x):
        last, _ = jax.lax.scan(lambda h, w: (layer(w, h), None), x, params)
        return (last**2).mean()

    return loss, params, jnp.ones((256, 16))


class Net:
    def block(self, w, h, *, kind):
        return h + {"tanh": jnp.tanh}[kind](h @ w)

    def __call__(self, ws, x):
        last, _ = jax.lax.scan(lambda h, w: (self.block(w, h, kind="tanh"), None), x, ws)
        return (last**2).mean()


def method():
    return Net().__call__, jax.random.normal(jax.random.key(0), (6, 16, 16)), jnp.ones((256, 16))


def own():
    def loss(ws, x):
        for w in ws:
            x = jax.checkpoint(lambda w, h: jnp.sin(jnp.sin(h @ w)))(w, x)
        return x.mean()

    return loss, list(jax.random.normal(jax.random.key(0), (3, 16, 16))), jnp.ones((256, 16))
"""


def found_of(points: dict[str, tuple[str, int, int, int]]) -> tuple[Found, list[str]]:
    """The search over made-up candidates: name -> place, held bytes, cost, peak; what compiled."""
    compiled = []

    def trace(candidate: Candidate) -> Traced:
        _, held, cost, _ = points[candidate.strategy]
        if held < 0:
            raise NoSuchProgram("it fails")
        return Traced(candidate, held, cost, (candidate.place, held, cost))

    def compile_it(traced: Traced) -> Point:
        compiled.append(traced.candidate.strategy)
        peak = points[traced.candidate.strategy][3]
        return Point(traced.candidate, peak, traced.held_bytes, traced.again)

    candidates = [Candidate(name, place) for name, (place, *_) in points.items()]
    return search(candidates, trace, compile_it, lambda phase, done, most: None), compiled


def test_of_each_place_what_nothing_there_beats_is_compiled_and_equal_programs_once() -> None:
    found, compiled = found_of(
        {
            "none": ("", 100, 0, 50),
            "worse": ("", 60, 9, 1),  # never compiled: `half` holds less and costs less
            "half": ("", 50, 5, 70),
            "all": ("", 0, 10, 60),
            "same": ("", 0, 10, 2),
            "broken": ("", -1, 0, 0),
            "block": ("b", 20, 10, 20),
            "block half": ("b", 40, 5, 30),
        }
    )
    assert compiled == ["none", "half", "all", "block half", "block"]
    assert found.refused == {"broken": "it fails"}
    assert found.traced == 7
    assert [point.candidate.strategy for point in found.frontier()] == [
        "none",
        "block half",
        "block",
    ]
    best = {budget: found.best(budget) for budget in (50, 49, 29, 19)}
    names = {budget: None if p is None else p.candidate.strategy for budget, p in best.items()}
    assert names == {50: "none", 49: "block half", 29: "block", 19: None}
    assert found.lowest.peak_bytes == 20


def test_a_search_is_bounded_and_says_what_it_passed_over() -> None:
    many = {f"{place}{i}": (place, 1000 - i, i, 1) for place in "abc" for i in range(1, 40)}
    found, compiled = found_of({"none": ("", 2000, 0, 9), **many})
    assert len(compiled) <= MOST_COMPILED
    assert found.traced == MOST_TRACED
    assert found.passed_over == MOST_TRACED - len(compiled)
    assert {"a1", "a39"} <= set(compiled)  # both ends of a place


@NEEDS_JAX
@pytest.mark.slow
def test_operations_are_those_of_the_shapes() -> None:
    import jax
    import jax.numpy as jnp

    from ckptcli.peers.jax_operations import operations

    def turns(w: Any, x: Any) -> Any:
        return jax.lax.scan(lambda h, _: (jnp.tanh(h @ w), None), x, None, length=5)[0]

    w, x = jnp.ones((4, 4)), jnp.ones((3, 4))
    assert operations(jax.make_jaxpr(turns)(w, x).jaxpr) == 5 * (2 * 3 * 4 * 4 + 3 * 4)
    image, kernel = jnp.ones((2, 3, 8, 8)), jnp.ones((5, 3, 3, 3))
    made = jax.make_jaxpr(lambda a, k: jax.lax.conv(a, k, (1, 1), "VALID"))(image, kernel)
    assert operations(made.jaxpr) == 2 * (2 * 5 * 6 * 6) * (3 * 3 * 3)
    unused = jax.make_jaxpr(lambda a: (jnp.sin(a), a + 1.0)[1])(x)
    assert operations(unused.jaxpr) == 12


def test_sets_of_names_are_few() -> None:
    pytest.importorskip("jax")
    from ckptcli.peers.jax_candidates import MOST_SETS, name_sets, sets_left_out

    assert name_sets([]) == []
    assert name_sets(["a", "b"]) == [("a",), ("b",), ("a", "b")]
    assert set(name_sets(["a", "b", "c"])) == {
        *(("a",), ("b",), ("c",), ("a", "b"), ("a", "c"), ("b", "c"), ("a", "b", "c")),
    }
    many = name_sets(list("abcdefgh"))
    assert len(many) == len(set(many)) == MOST_SETS
    assert tuple("abcdefgh") in many
    assert (sets_left_out("abc"), sets_left_out("abcdefgh")) == (0, 255 - MOST_SETS)
    assert len(name_sets([f"layer {i}" for i in range(200)])) == MOST_SETS, "of 2^200"


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "net.py").write_text(FILE)
    return tmp_path / "net.py"


def planned(
    capsys: pytest.CaptureFixture[str], name: str, *arguments: str, code: int = 0
) -> dict[str, Any]:
    capsys.readouterr()
    assert run_command(["plan", "-q", "--json", "--function", name, *arguments]) == code
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


def pasted_peak(file: Path, snippet: dict[str, str], make: str) -> int:
    """What JAX itself says of the file with the code above the `def` that it ends with."""
    import jax

    code, lines = snippet["code"].rstrip("\n").split("\n"), file.read_text().split("\n")
    (at,) = [i for i, line in enumerate(lines) if line.strip() == code[-1]]
    indent = lines[at][: -len(lines[at].lstrip())]
    decorators = [i for i, line in enumerate(code) if line.startswith("@")]
    before, above = code[: decorators[0]], code[decorators[0] : -1]
    lines[at:at] = [indent + line for line in above]
    names: dict[str, Any] = {}
    exec(compile("\n".join([*before, *lines]), "pasted.py", "exec"), names)
    loss, params, x = names[make]()
    known = jax.jit(jax.value_and_grad(loss)).lower(params, x).compile().memory_analysis()
    return int(known.output_size_in_bytes + known.temp_size_in_bytes - known.alias_size_in_bytes)


@NEEDS_JAX
@pytest.mark.slow
@pytest.mark.usefixtures("file")
def test_a_budget_gets_names_and_code_that_jax_itself_finds_within_it(
    file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    every = planned(capsys, "net.py:make", "--pareto")
    assert (every["schema"], every["kind"], every["feasible"]) == ("ckpt.plan/1", "function", True)
    assert every["names"] == ["down", "up"]
    none, named, nothing = every["frontier"]
    assert [p["strategy"] for p in (none, named, nothing)] == [
        "none",
        "remat:lines=net.py:layer,names=up",
        "remat:lines=net.py:layer",
    ]
    assert named["peak"] < 0.6 * none["peak"]
    plan = planned(capsys, "net.py:make", "--budget", str(named["peak"]), "--run")
    assert plan["strategy"] == named["strategy"]
    (snippet,) = plan["code"]
    assert 'jax.checkpoint_policies.save_only_these_names("up")' in snippet["code"]
    assert pasted_peak(file, snippet, "make") == named["peak"] == plan["measured"]["peak_bytes"]
    assert plan["measured"]["within_budget"]
    assert plan["measured"]["gradients_equal"]
    less = planned(capsys, "net.py:make", "--budget", str(nothing["peak"] - 1), code=1)
    assert (less["feasible"], less["min_budget"]) == (False, nothing["peak"])
    arguments = every["covers"]["above_bytes"]
    device = arguments + 2 * 4 * 2 * 6 * 16 * 64 + nothing["peak"]
    words = ("--device-memory", str(device), "--optimizer", "adam")
    on_it = planned(capsys, "net.py:make", *words)
    assert (on_it["budget"], on_it["strategy"]) == (nothing["peak"], nothing["strategy"])


@NEEDS_JAX
@pytest.mark.parametrize(
    ("written", "header"),
    [
        ("def layer(w, h): return h @ w", "def layer(w, h): return h @ w"),
        ("def layer(w, h):  # one: layer\n    return h @ w", "def layer(w, h):  # one: layer"),
        ("def layer(\n    w,\n    h,\n):\n    return h @ w", "def layer(\n    w,\n    h,\n):"),
    ],
)
def test_a_decorator_stands_above_the_lines_that_it_is_for(
    written: str, header: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And none of what follows is taken for them."""
    from ckptcli.peers.jax_checkpoint_code import ways
    from ckptcli.peers.jax_function import load_function

    monkeypatch.chdir(tmp_path)
    made = (
        "def make():\n    return (lambda w, x: layer(w, x).sum()), jnp.ones((4, 4)), jnp.ones(4)\n"
    )
    Path("net.py").write_text(f"import jax.numpy as jnp\n\n\n{written}\n\n\n{made}")
    first, *_ = ways(load_function("net.py:make"), Candidate("remat", "net.py:layer"))
    assert first.snippet.code == f"import jax\n\n\n@jax.checkpoint\n{header}\n"


@NEEDS_JAX
@pytest.mark.slow
@pytest.mark.usefixtures("file")
def test_a_method_of_other_things_than_arrays_gets_a_wrapper(
    file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    every = planned(capsys, "net.py:method", "--pareto")
    least = every["frontier"][-1]
    assert least["strategy"] == "remat:lines=net.py:Net.block"
    plan = planned(capsys, "net.py:method", "--budget", str(least["peak"]))
    (snippet,) = plan["code"]
    assert "@checkpointed\ndef block(self, w, h, *, kind):" in snippet["code"]
    assert pasted_peak(file, snippet, "method") <= least["peak"]


@NEEDS_JAX
@pytest.mark.slow
@pytest.mark.usefixtures("file")
def test_checkpoints_of_its_own_are_a_candidate_without_code(
    capsys: pytest.CaptureFixture[str],
) -> None:
    every = planned(capsys, "net.py:own", "--pareto", "--cost", "count")
    own = next(point for point in every["points"] if point["strategy"] == "own")
    assert own["recomputed"] == 6  # three products and the inner sines
    assert run_command(["plan", "--function", "net.py:own", "--pareto"]) == 0
    assert "has checkpoints of its own" in capsys.readouterr().err


@NEEDS_JAX
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        pytest.param(
            ("--pareto", "--blocks", "nope"), "calls no function `nope`", marks=pytest.mark.slow
        ),
        ((), "there is nothing to plan for --function net.py:make"),
        (("--pareto", "--engine", "jax-eager"), "is for what XLA compiles"),
        (("--pareto", "--graph", "dag.json"), "--function net.py:make and --graph are two"),
        (("--pareto", "--module", "net.py:make"), "are two programs"),
    ],
)
@pytest.mark.usefixtures("file")
def test_what_cannot_be_planned_ends_with_two(
    arguments: tuple[str, ...], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_command(["plan", "--function", "net.py:make", *arguments]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert message in captured.err
