"""What others install: the source distribution, and the README's step for their CI."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
BUILD = "from setuptools import build_meta; build_meta.build_sdist('out')"


def test_the_source_distribution_holds_no_test_that_lacks_its_files(tmp_path: Path) -> None:
    pytest.importorskip("setuptools", minversion="77")
    for name in ("pyproject.toml", "README.md", "LICENSE", "MANIFEST.in"):
        shutil.copy(ROOT / name, tmp_path)
    for name in ("ckptcli/__init__.py", "ckptcli/version.py", "tests/test_process.py"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    (tmp_path / "out").mkdir()
    subprocess.run([sys.executable, "-c", BUILD], cwd=tmp_path, check=True, capture_output=True)
    (archive,) = (tmp_path / "out").glob("*.tar.gz")
    with tarfile.open(archive) as known:
        names = [name.partition("/")[2] for name in known.getnames()]
    assert "ckptcli/version.py" in names
    assert not [name for name in names if name.startswith("tests")]


@pytest.mark.slow
def test_the_step_for_ci_profiles_a_program_of_the_readers(tmp_path: Path) -> None:
    (step,) = re.findall(r"```yaml\n(.*?)```", (ROOT / "README.md").read_text(), flags=re.S)
    assert "pip install -q ckptcli\n" in step
    (command,) = re.findall(r"bin/ckpt (run .*?)\n-", step.replace("\\\n", " "), flags=re.S)
    shutil.copy(ROOT / "examples" / "mlp.py", tmp_path / "net.py")
    words = [*shlex.split(command), "--reps", "2", "--fail-on", "time > 100000%"]
    done = subprocess.run(
        [sys.executable, "-m", "ckptcli", *words], capture_output=True, text=True, cwd=tmp_path
    )
    assert done.returncode in (0, 3), done.stderr
    assert (tmp_path / "profile.html").exists()
