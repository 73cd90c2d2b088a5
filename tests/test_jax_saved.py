"""`ckpt saved --function FILE.py:MAKE`: what JAX holds, beside JAX's own list."""

from __future__ import annotations

import json
import re
from collections import Counter
from typing import Any

import pytest

from ckptcli.cli.main import run_command
from ckptcli.measure.function_saved import SUMS, Residual
from ckptcli.measure.saved_list import SavedList, SavedProgram, saved_object
from tests.backend_kit import NEEDS_JAX
from tests.jax_functions import (
    EXAMPLES,
    NEEDS_EQUINOX,
    NEEDS_FLAX,
    file as file,
    line_of,
    ran,
)

pytestmark = pytest.mark.thinned(3)

SHORT = {"float32": "f32", "float64": "f64", "int32": "i32", "bool": "bool", "bfloat16": "bf16"}


def residual(kind: str, size: int, **attributes: Any) -> Residual:
    texts = dict.fromkeys(("primitive", "within", "name", "source", "line", "function"), "")
    return Residual(kind=kind, shape=(size,), dtype="bool", bytes=size, **{**texts, **attributes})


def test_arguments_and_literals_are_listed_and_not_counted() -> None:
    held = SavedList(
        "none",
        [
            residual("argument", 64, name="x"),
            residual("constant", 32),
            residual("computed", 16, line="a.py:1", function="f", name="p"),
            residual("policy", 8, line="a.py:1", function="g", name="p"),
            residual("literal", 4),
        ],
    )
    assert (held.saved_tensors, held.saved_bytes) == (3, 56)
    assert [(t.key, t.tensors, t.bytes) for t in held.totals("line")] == [("a.py:1", 2, 24)]
    assert [t.key for t in held.totals("function")] == ["f", "g"]
    assert [(t.key, t.bytes) for t in held.totals("name")] == [("p", 24)]
    lists = [SavedList("remat"), SavedList("sqrt", reason="no layers")]
    data = saved_object(SavedProgram("f", lists, SUMS, "function", as_it_is=held))
    assert (data["saved_bytes"], len(data["saved"])) == (56, 5)
    assert [s.get("saved_bytes", s.get("reason")) for s in data["strategies"]] == [0, "no layers"]


def listed(capsys: pytest.CaptureFixture[str], function: str, *arguments: str) -> dict[str, Any]:
    assert run_command(["saved", "--function", function, "--json", "-q", *arguments]) == 0
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


FIGURES = [
    pytest.param("jax_flax.py:make", 4, 131_072, marks=NEEDS_FLAX),
    pytest.param("jax_flax.py:make_dots", 32, 1_572_864, marks=NEEDS_FLAX),
    pytest.param("jax_equinox.py:make", 13, 1_212_416, marks=NEEDS_EQUINOX),
    pytest.param("jax_nnx.py:make", 24, 786_432, marks=NEEDS_FLAX),
]


@pytest.mark.slow
@NEEDS_JAX
@pytest.mark.parametrize(("function", "tensors", "size"), FIGURES)
def test_figures_known_from_elsewhere(
    capsys: pytest.CaptureFixture[str], function: str, tensors: int, size: int
) -> None:
    data = listed(capsys, str(EXAMPLES / function))
    assert (data["saved_tensors"], data["saved_bytes"]) == (tensors, size)


def as_jax_says(entry: dict[str, Any]) -> str:
    """An entry of ours as a line of JAX's list; there the batch is closed over."""
    shape = f"{SHORT[entry['dtype']]}[{','.join(map(str, entry['shape']))}]"
    if entry["kind"] in ("literal", "constant", "argument"):
        is_parameter = entry["kind"] == "argument" and entry["name"].startswith("q")
        kind = f"the argument {entry['name']}" if is_parameter else f"a {entry['kind']}"
        return f"{shape} from {kind}".replace("a argument", "a constant")
    call = entry["within"].split(", ")[0]
    if call.startswith("jit "):
        return f"{shape} output of jitted function '{call[4:]}' from {entry['source']}"
    if entry["name"] and not call:
        return f"{shape} named '{entry['name']}' from {entry['source']}"
    return f"{shape} output of {call or entry['primitive']} from {entry['source']}"


PROGRAMS = ["checkpointed", "scanned", "branched", "closed_over", "under_policies", "everything"]
LIBRARIES = [
    pytest.param("jax_flax.py:make_dots", marks=NEEDS_FLAX),
    pytest.param("jax_equinox.py:make_checkpointed", marks=NEEDS_EQUINOX),
    pytest.param("jax_mlp.py:make"),
]


@pytest.mark.slow
@NEEDS_JAX
@pytest.mark.parametrize("name", [*PROGRAMS, *LIBRARIES])
def test_it_is_the_list_that_jax_prints(
    capsys: pytest.CaptureFixture[str], file: str, name: str
) -> None:
    """Entry by entry, literals too: numbers that stand in the program, as the 2.0 of `h * 2.0`.
    JAX lists one for each use of it; they stand here as often, and take no memory, so that the sum
    leaves them out.
    """
    from jax.ad_checkpoint import print_saved_residuals

    from ckptcli.peers.jax_function import load_function

    path = str(EXAMPLES / name) if ".py" in name else f"{file}:{name}"
    user = load_function(path)
    arrays = user.other_arrays()
    print_saved_residuals(lambda q: user.scalar(q, arrays), user.parameter_leaves())
    theirs = capsys.readouterr().out.splitlines()
    places = {n: f"q[{k}]" for k, n in enumerate(user.parameter_names())}
    ours = [
        as_jax_says({**entry, "name": places.get(entry["name"], entry["name"])})
        for entry in listed(capsys, path)["saved"]
    ]
    assert Counter(ours) == Counter(theirs)


@pytest.mark.slow
@NEEDS_JAX
def test_each_says_where_it_comes_from(capsys: pytest.CaptureFixture[str], file: str) -> None:
    data = listed(capsys, f"{file}:under_policies")
    by_kind = {entry["kind"]: entry for entry in data["saved"]}
    assert set(by_kind) == {"policy", "computed", "argument"}
    products = [entry for entry in data["saved"] if entry["kind"] == "policy"]
    assert [(e["primitive"], e["name"]) for e in products] == [
        ("name", "product"),
        ("dot_general", ""),
    ]
    place = f"{file}:{line_of('product = checkpoint_name')}"
    assert {(e["line"], e["function"]) for e in products} == {(place, "layer")}
    n = 32 * 16 * 4
    assert {t["key"]: t["bytes"] for t in data["by_line"]}[place] == 2 * n
    assert data["by_name"] == [{"key": "product", "tensors": 1, "bytes": n, "share": 0.25}]
    closed = listed(capsys, f"{file}:closed_over")
    inside = [entry for entry in closed["saved"] if entry["name"] == "wave"]
    assert [(e["within"], e["primitive"]) for e in inside] == [("jit last", "name")]
    scanned = listed(capsys, f"{file}:scanned", "-s", "none")["strategies"][0]["saved"]
    made = {(e["within"], e["primitive"]) for e in scanned if e["kind"] == "computed"}
    assert ("jit loss, scan", "tanh") in made


@pytest.mark.slow
@NEEDS_JAX
@pytest.mark.parametrize("name", ["checkpointed", "closed_over", "everything"])
def test_the_list_sums_to_what_the_profile_says(
    capsys: pytest.CaptureFixture[str], file: str, name: str
) -> None:
    rows = ran(capsys, f"{file}:{name}", "-q", "-s", "remat")["strategies"]
    held = listed(capsys, f"{file}:{name}", "-s", "none", "-s", "remat")["strategies"]
    assert [(h["strategy"], h["saved_tensors"], h["saved_bytes"]) for h in held] == [
        (row["strategy"], row["saved_tensors"], row["saved_bytes"]) for row in rows
    ]


@pytest.mark.slow
@NEEDS_JAX
def test_the_screen(capsys: pytest.CaptureFixture[str], file: str) -> None:
    command = ["saved", "--function", f"{file}:under_policies", "--width", "200"]
    assert run_command([*command, "-s", "own", "-s", "sqrt"]) == 0
    captured = capsys.readouterr()
    assert "own: 4 tensors, 8.0 KiB held; beside 2 arguments" in captured.out
    assert re.search(
        r"2\.0 KiB +name, policy +product +\[32, 16\] float32 +\S+:\d+ +layer", captured.out
    )
    assert "sqrt: n/a: a function has no layers to group" in captured.out
    assert "by line" in captured.out
    assert run_command([*command, "-n", "3"]) == 0
    assert "warning: --n has no effect on a function" in capsys.readouterr().err
