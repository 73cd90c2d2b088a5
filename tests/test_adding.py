"""What can be added by one file is: to a copy of the tree, and then a command uses it.

The table of docs/architecture.md; an option is added in test_options.py, and what a run does with a
subject is in test_run_subjects.py.
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
    "cli/subjects/abacus.py": """
from dataclasses import dataclass
from ckptcli.cli.subjects.base import PlanAnswer, Profile
from ckptcli.measure.check import Check, CheckedProgram, WrongGradient
from ckptcli.measure.difference import Difference
from ckptcli.measure.saved_list import SavedList, SavedProgram, SavedWords
from ckptcli.options.effects import Kind

class SUBJECT:
    engine_names = ()
    sums = ("wire",)

    def __init__(self, options, line):
        pass

    @staticmethod
    def named_by(options):
        return "--workload beads" if options.program.workload_text == "beads" else None

    @staticmethod
    def kind(options):
        return Kind("workload", "beads", frozenset({"n"}))

    def profile(self, options):
        return Beads()

    def checks(self, options, engines):
        right = Check("all", "beads", gradients=1, by_bits=True, compared=1, same_bits=1)
        yield CheckedProgram("ten beads", [right], "abacus")
        moved = Difference((0,), 1.0, 2.0, None)
        wrong = [WrongGradient("bead", moved, moved, 0.5)]
        half = Check("half", "beads", gradients=1, by_bits=True, gradients_apart=wrong)
        yield CheckedProgram("nine beads", [half], "abacus")

    def saved(self, options, engines):
        held = SavedList("all", [Bead(4, "up"), Bead(2, "up")])
        none = SavedList("half", reason="it has one wire")
        yield SavedProgram("ten beads", [held, none], self.sums, "abacus")

    def plan(self, options, engines, tell):
        tell("beads", 0, 1)
        return Beaded(int(options.problem.budget_text))

@dataclass(frozen=True)
class Beaded(PlanAnswer):
    beads: int
    notes = ("beads may stick",)

    @property
    def feasible(self):
        return self.beads > 1

    @property
    def is_wrong(self):
        return self.beads > 10

    def data(self):
        return f'{{"beads": {self.beads}}}'

    def render(self, screen):
        return f"{self.beads} beads"

@dataclass(frozen=True, slots=True)
class Bead:
    bytes: int
    wire: str
    shape: tuple[int, ...] = (1,)
    dtype: str = "wood"

    @property
    def not_held_as(self):
        return ""

    def words(self):
        return SavedWords(op="push", held_by=self.wire)

    def keys(self, depth):
        return {"wire": self.wire}

class Beads(Profile):
    has_pass = True
    row_names = ("all",)
    has_reference = False

    def open(self, engines):
        return []

    def measure(self, measurement):
        from ckptcli.profiling.profile import profile
        from ckptcli.workloads.silu import SiluWorkload
        return profile(SiluWorkload(1, 4), ["none"], plan=measurement.plan)
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
    def call(*arguments: str, code: int = 0) -> str:
        done = subprocess.run(
            [sys.executable, "-m", "ckptcli", *arguments],
            capture_output=True,
            text=True,
            cwd=tree,
            env={**os.environ, "PYTHONPATH": str(tree)},
        )
        assert done.returncode == code, done.stderr
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
def test_a_subject_of_run_check_saved_and_plan(ckpt: Command, tree: Path) -> None:
    """One file: each command prints, gives data and ends as it does for every subject."""
    beads = ("--workload", "beads", "-q")
    assert "none: " in ckpt("run", *beads, "--reps", "1")
    checked = ckpt("check", *beads, code=5)
    assert (
        "ten beads\nall: passed\n  gradients           1 of 1 is `none`'s, bit for bit" in checked
    )
    assert "nine beads\nhalf: FAILED" in checked
    assert "bead: element [0]: 1.0 became 2.0 (not a number), moved by +1.00e+00" in checked
    right, wrong = map(json.loads, ckpt("check", *beads, "--json", code=5).splitlines())
    assert (right["schema"], right["abacus"]) == ("ckpt.check/1", "ten beads")
    assert [right["checks"][0]["passed"], wrong["checks"][0]["passed"]] == [True, False]
    listed = ckpt("saved", *beads)
    assert "all: 2 tensors, 6 B held" in listed
    assert "half: n/a: it has one wire" in listed
    (found, none) = json.loads(ckpt("saved", *beads, "--json"))["strategies"]
    assert found["saved"][0] == {"bytes": 4, "wire": "up", "shape": [1], "dtype": "wood"}
    assert found["by_wire"] == [{"key": "up", "tensors": 2, "bytes": 6, "share": 1.0}]
    assert none == {"strategy": "half", "reason": "it has one wire"}
    assert ckpt("plan", *beads, "--budget", "4") == "4 beads"
    assert ckpt("plan", *beads, "--budget", "1", "--json", code=1) == '{"beads": 1}'
    ckpt("plan", *beads, "--budget", "12", "--export", "beads.json", code=5)
    assert (tree / "beads.json").read_text() == '{"beads": 12}'


@pytest.mark.slow
def test_a_subject_is_swept_over(ckpt: Command) -> None:
    words = ("--workload", "beads", "-n", "4,8", "--reps", "1", "--json", "-q")
    data = json.loads(ckpt("sweep", *words))
    assert len(data["points"]) == 2


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
