"""How a run ends and what it says then: which exit code comes first, and how to run it again."""

from __future__ import annotations

import itertools
import json
import os
import shlex
import signal
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from ckptcli.cli.main import run_command
from tests.test_endings import start, wait_for

SMALL = ("run", "--n", "8", "--layers", "2")
WRONG = ("run", "--workload", "trg", "--steps", "3", "-s", "remat")
WRONG += ("--perturb-replay", "sign:1,a,0")
"""A sign that is turned in the recomputation of the first of three steps: a wrong gradient."""

Ran = Callable[..., tuple[int, str, str]]


@pytest.fixture
def ran(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Ran:
    """Run a command in an empty directory: exit code, stdout, stderr."""
    monkeypatch.chdir(tmp_path)

    def run(*arguments: str) -> tuple[int, str, str]:
        code = run_command(arguments)
        return code, *capsys.readouterr()

    return run


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    ("gates", "code"),
    [
        ((), 5),
        (("--fail-on", "recomputed > 0"), 5),
        (("--strict",), 5),
        (("--strict", "--fail-on", "recomputed > 0"), 5),
    ],
)
def test_a_wrong_gradient_comes_before_every_gate(
    ran: Ran, gates: tuple[str, ...], code: int
) -> None:
    ended, out, err = ran(*WRONG, "--reps", "1", *gates)
    assert ended == code
    assert "remat: wrong: peak " in out
    assert ("failed: remat: `recomputed > 0` holds" in err) == ("--fail-on" in gates)


def test_a_gate_that_holds_comes_before_a_verdict_that_is_unclear(ran: Ran) -> None:
    gates = ("--strict", "--fail-on", "recomputed > 0")
    assert ran(*SMALL, "--reps", "1", *gates)[0] == 3
    assert ran(*SMALL, "--reps", "1", "--strict")[0] == 4


@pytest.mark.slow
def test_every_measuring_process_computes_again_as_wrongly_as_it_was_told(ran: Ran) -> None:
    code, out, _ = ran(*WRONG, "--reps", "2", "--processes", "2", "--json")
    none, remat = json.loads(out)["strategies"]
    assert code == 5
    assert none["grad_sha256"] != remat["grad_sha256"]
    assert remat["judgement"]["word"] == "wrong"


MEASURING = {
    "--threshold": "7.5",
    "--warmup": "2",
    "--seed": "3",
    "--threads": "1",
    "--layers": "2",
    "--n": "8",
    "--dtype": "float64",
}


def test_what_is_proposed_to_measure_again_measures_the_same(ran: Ran) -> None:
    """Two rounds are too few for a verdict, so that the command is proposed with more."""
    options = [word for pair in MEASURING.items() for word in pair]
    code, _, err = ran("run", *options, "-s", "none", "-s", "remat", "--reps", "2")
    assert code == 0
    proposed, _ = (line.partition("next: ")[2] for line in err.splitlines() if "next: " in line)
    words = shlex.split(proposed)
    assert words[:2] == ["ckpt", "run"]
    given = list(itertools.pairwise(words))
    assert ("--strategy", "none") in given
    assert ("--strategy", "remat") in given
    for pair in MEASURING.items():
        assert pair in given
    (reps,) = [int(value) for option, value in given if option == "--reps"]
    assert reps > 2


class Policies(HTMLParser):
    """What a page says that it may load, and the elements before that."""

    def __init__(self) -> None:
        super().__init__()
        self.policies: list[str] = []
        self.before: list[str] = []
        self.addresses: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        attributes: dict[str, Any] = dict(attrs)
        if attributes.get("http-equiv") == "Content-Security-Policy":
            self.policies.append(attributes["content"])
        elif not self.policies:
            self.before.append(tag)
        self.addresses += [attributes[name] for name in ("src", "href") if name in attributes]


def test_a_page_may_load_nothing_and_says_so_before_anything_could_be(ran: Ran) -> None:
    assert ran(*SMALL, "--reps", "1", "--export", "page.html")[0] == 0
    page = Policies()
    page.feed(Path("page.html").read_text(encoding="utf-8"))
    (policy,) = page.policies
    rules = dict(rule.split(maxsplit=1) for rule in policy.split("; "))
    assert rules["default-src"] == "'none'"
    assert "script-src" not in rules
    assert "http" not in policy
    assert "*" not in policy
    assert set(page.before) <= {"html", "head", "meta"}
    assert not [address for address in page.addresses if not address.startswith(("data:", "#"))]


def test_an_export_that_failed_once_is_left_alone_and_told_at_the_end(
    ran: Ran, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The disk is full for the second of four rounds. What the file has is what it had before."""
    replace, calls = os.replace, []

    def full_once(source: Any, target: Any) -> None:
        calls.append(target)
        if len(calls) == 2:
            raise OSError(28, "No space left on device")
        replace(source, target)

    monkeypatch.setattr(os, "replace", full_once)
    code, out, err = ran(*SMALL, "--reps", "4", "--warmup", "0", "--export", "run.json")
    assert code == 1
    assert "4 rounds, as asked" in " ".join(out.split())
    assert "`run.json` cannot be written: No space left on device" in err
    record = json.loads(Path("run.json").read_text())
    assert (record["partial"], len(record["strategies"][0]["passes"]["counted"])) == (True, 1)
    assert len(calls) == 2


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(signal, "SIGSTOP"), reason="needs a process that can be halted")
def test_a_second_signal_does_not_break_what_the_first_one_saves(tmp_path: Path) -> None:
    """Both wait while the process is halted: the second comes while the first is handled."""
    command = (*SMALL, "--reps", "1000000", "--export", "run.json", "--json")
    process = start(*command, cwd=tmp_path)
    wait_for(tmp_path / "run.json")
    for number in (signal.SIGSTOP, signal.SIGINT, signal.SIGTERM, signal.SIGCONT):
        process.send_signal(number)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "Traceback" not in err
    printed = json.loads(out)
    assert (printed["partial"], printed["stopped"]) == (True, "interrupted")
    saved = json.loads((tmp_path / "run.json").read_text())
    assert saved["rounds"] == printed["rounds"] >= 1
