"""What can be added by one file is: to a copy of the tree, and then a command uses it.

The table of docs/architecture.md; an option is added in test_options.py, a subject of a run in
test_run_subjects.py.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[1] / "ckptcli"
SMALL = ("-l", "2", "-n", "8", "--reps", "1", "--no-memory-check", "-q")

Command = Callable[..., str]

FILES = {
    "autodiff/ops/halving.py": """
from ckptcli.autodiff.apply import unary
from ckptcli.autodiff.op import Op
from ckptcli.autodiff.ops.table import operation
from ckptcli.autodiff.tensor import Tensor
from ckptcli.graph import Bound

HALVE = Op(
    "halve", Bound.MEMORY, 1,
    forward=lambda xp, x, _: xp.multiply(x, 0.5),
    backward=lambda xp, grad, owned, kept, step: xp.multiply(grad, 0.5),
)

@operation()
def halve(x: Tensor) -> Tensor:
    '''x / 2.'''
    return unary(HALVE, x)
""",
    "checkpoint/strategies/forgetful.py": """
from ckptcli.checkpoint.strategies.balanced import BalancedCheckpointing
from ckptcli.checkpoint.strategies.registry import register

@register
class Forgetful(BalancedCheckpointing):
    '''Another name of `balanced`.'''
    keyword = "forgetful"
    summary = "let go of what is cheap"
    label = "Forgetful"
""",
    "checkpoint/policies/sigmoids.py": """
from dataclasses import dataclass
from ckptcli.checkpoint.policies.base import BasePolicy
from ckptcli.checkpoint.policies.registry import register

@register
@dataclass(frozen=True, slots=True)
class Sigmoids(BasePolicy):
    '''Save sigmoids.'''
    keyword = "sigmoids"
    summary = "sigmoids alone"

    def __call__(self, value):
        return value.op == "sigmoid"

    def in_jax(self, policies):
        return policies.nothing_saveable

    def in_torch(self, ops):
        return frozenset({"sigmoid"})
""",
    "backends/libraries/abacus_library.py": """
from ckptcli.backends.libraries.numpy_library import NumpyLibrary
from ckptcli.backends.registry import register

@register
class AbacusLibrary(NumpyLibrary):
    '''NumPy by another name.'''
    name = "abacus"
    title = "Abacus"
""",
    "workloads/tiny.py": """
from ckptcli.workloads.registry import workload
from ckptcli.workloads.silu import SiluWorkload

@workload("tiny", "dtype")
def open_tiny(argument, options):
    return [SiluWorkload(1, 4, None, options.dtype or "float32", 0)]
""",
    "report/formats/shout.py": """
from ckptcli.report.formats.base import register

@register
class ShoutExporter:
    '''The title, loudly.'''
    name = "shout"
    suffixes = (".shout",)
    binary = False

    def render(self, record):
        return record.title.upper()
""",
}


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("tree")
    shutil.copytree(PACKAGE, folder / "ckptcli", ignore=shutil.ignore_patterns("__pycache__"))
    for name, text in FILES.items():
        assert not (folder / "ckptcli" / name).exists()
        (folder / "ckptcli" / name).write_text(text)
    return folder


@pytest.fixture
def ckpt(tree: Path) -> Command:
    def call(*arguments: str) -> str:
        done = subprocess.run(
            [sys.executable, "-m", "ckptcli", *arguments],
            capture_output=True,
            text=True,
            cwd=tree,
            env={**os.environ, "PYTHONPATH": str(tree)},
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    return call


@pytest.mark.slow
def test_an_op(ckpt: Command, tree: Path) -> None:
    assert "x / 2." in ckpt("ops", "halve")
    leaf = {"op": "leaf", "req": True, "data": [1.0, 2.0, 3.0, 4.0]}
    graph = {"ops": [leaf, {"op": "halve", "in": [0]}, {"op": "sum", "in": [1]}], "root": 2}
    (tree / "g.json").write_text(json.dumps(graph))
    assert "passed" in ckpt("check", "--workload", "graph:g.json")
    (found,) = json.loads(ckpt("log", "--workload", "graph:g.json", "--json"))["gradients"].values()
    assert found == [0.5] * 4


@pytest.mark.slow
def test_a_strategy_and_a_policy(ckpt: Command) -> None:
    assert "let go of what is cheap" in ckpt("strategies")
    policy = "remat:policy=sigmoids"
    data = json.loads(ckpt("run", *SMALL, "-s", "forgetful", "-s", policy, "--json"))
    again = {row["strategy"]: row["recomputed_by_op"] for row in data["strategies"]}
    assert again["forgetful"] == {"mul": 1, "sigmoid": 2}
    assert again[policy] == {"matmul": 2}


@pytest.mark.slow
def test_an_array_library(ckpt: Command) -> None:
    assert "abacus" in ckpt("backends")
    data = json.loads(ckpt("run", *SMALL, "--backend", "abacus", "--json"))
    assert data["config"]["backend_name"] == "abacus"


def test_a_workload_and_a_format(ckpt: Command, tree: Path) -> None:
    ckpt("run", "--workload", "tiny", "--reps", "1", "-q", "--export", "a.shout", "--force")
    assert (tree / "a.shout").read_text() == "N = 4, LAYERS = 1"


@pytest.mark.slow
def test_a_figure_of_the_record(ckpt: Command, tree: Path) -> None:
    """One field, described where it is declared: written, read back, in the schema, refused."""
    row = tree / "ckptcli" / "measure" / "row.py"
    text = row.read_text()
    described = "    Attributes:\n        luck: How lucky the row was, a share of 1.\n"
    changed = text.replace(
        """    Attributes:
        strategy: Name, as on the command line.
""",
        described + "        strategy: Name, as on the command line.\n",
    ).replace("    engine: str = OURS\n", "    engine: str = OURS\n    luck: Share = 0.5\n")
    row.write_text(changed)
    try:
        (tree / "r.json").write_text(ckpt("run", *SMALL, "--json"))
        data = json.loads((tree / "r.json").read_text())
        assert [entry["luck"] for entry in data["strategies"]] == [0.5, 0.5]
        data["strategies"][0]["luck"] = 0.75
        (tree / "r.json").write_text(json.dumps(data))
        assert json.loads(ckpt("show", "r.json", "--json"))["strategies"][0]["luck"] == 0.75
        program = "from ckptcli.measure.json_schema import schema_text; print(schema_text())"
        done = subprocess.run(
            [sys.executable, "-c", program], capture_output=True, text=True, cwd=tree, check=True
        )
        schema = json.loads(done.stdout)["$defs"]["row"]["properties"]["luck"]
        assert schema == {
            "description": "How lucky the row was, a share of 1.",
            "type": "number",
            "minimum": 0,
            "maximum": 10**18,
        }
    finally:
        row.write_text(text)
