"""burn.toml: what is read, what is refused, and which file the search ends at."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from ckptcli.config import (
    FILE_NAMES,
    FoundConfig,
    LoggerSettings,
    find_config,
    read_config_file,
    read_defaults,
)
from ckptcli.config.toml_file import parse_toml
from ckptcli.errors import ConfigError
from ckptcli.events import Level

ROOT = Path(__file__).parents[1]
FULL = '[autodiff.logger]\nlevel = "full"\n'
MALFORMED = '[autodiff.logger]\nlevel = "loud"\n'


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


def read(tmp_path: Path, text: str) -> LoggerSettings:
    return read_config_file(write(tmp_path / "named.toml", text))


def refusal(tmp_path: Path, text: str) -> ConfigError:
    with pytest.raises(ConfigError) as caught:
        read(tmp_path, text)
    assert caught.value.exit_code == 2
    assert str(tmp_path / "named.toml") in caught.value.message
    return caught.value


@pytest.fixture(autouse=True)
def _no_config_above(tmp_path: Path) -> None:
    """The tests of the search stand on there being no burn.toml above the temporary directory."""
    assert find_config(tmp_path) == FoundConfig(LoggerSettings(), None, ())


# What a valid file gives.


def test_defaults_are_those_of_burn() -> None:
    settings = LoggerSettings()
    assert settings.level is Level.DISABLED
    assert settings.file is None
    assert settings.append is True
    assert settings.stdout is False
    assert settings.stderr is False
    assert settings.log is None


def test_every_key(tmp_path: Path) -> None:
    text = (
        "[autodiff.logger]\n"
        'level = "medium"\nfile = "a/b.log"\nappend = false\n'
        'stdout = true\nstderr = true\nlog = "trace"\n'
    )
    assert read(tmp_path, text) == LoggerSettings(
        Level.MEDIUM, Path("a/b.log"), False, True, True, "trace"
    )


@pytest.mark.parametrize(
    "text",
    [
        '[autodiff]\nlogger = { level = "full", stdout = true }\n',
        'autodiff = { logger = { level = "full", stdout = true } }\n',
        'autodiff.logger.level = "full"\nautodiff.logger.stdout = true\n',
        '[autodiff.logger]\r\nlevel = "full"\r\nstdout = true\r\n',
        '\ufeff[autodiff.logger]\nlevel = "full"\nstdout = true\n',
    ],
    ids=["inline", "inline twice", "dotted keys", "windows line ends", "byte order mark"],
)
def test_other_spellings(tmp_path: Path, text: str) -> None:
    assert read(tmp_path, text) == LoggerSettings(level=Level.FULL, stdout=True)


@pytest.mark.parametrize("text", ["", "# nothing\n", "[autodiff]\n", "[autodiff.logger]\n"])
def test_every_section_and_key_is_optional(tmp_path: Path, text: str) -> None:
    assert read(tmp_path, text) == LoggerSettings()


def test_unknown_keys_and_sections_are_ignored(tmp_path: Path) -> None:
    text = (
        '[autodiff]\nspeed = "high"\n'
        '[autodiff.logger]\nlevel = "full"\ncolour = 3\n'
        '[fusion.logger]\nlevel = "loud"\n'
        '[cubecl.profiling]\nlogger = { level = "medium", stdout = true }\n'
    )
    assert read(tmp_path, text) == LoggerSettings(level=Level.FULL)


@pytest.mark.parametrize("level", list(Level))
def test_every_level(tmp_path: Path, level: Level) -> None:
    text = f'[autodiff.logger]\nlevel = "{level.name.lower()}"\n'
    assert read(tmp_path, text).level is level


# What a file named by the user is refused for.


def test_a_missing_file(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"absent\.toml` does not exist"):
        read_config_file(tmp_path / "absent.toml")


def test_a_directory(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot be read: "):
        read_config_file(tmp_path)


def test_bytes_that_are_not_utf8(tmp_path: Path) -> None:
    (tmp_path / "named.toml").write_bytes(b"# caf\xe9\n")
    with pytest.raises(ConfigError, match="is not UTF-8 text: byte 5 is wrong"):
        read_config_file(tmp_path / "named.toml")


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("[autodiff.logger]\nlevel = = 1\n", "line 2, column 9"),
        ('[autodiff.logger]\nlevel = "full', "line 2, column 14"),
        ("[autodiff.logger]\nlevel", "line 2, column 6"),
        ('[a]\n[autodiff.logger]\nlog = "info"\nlog = "info"\n', "line 4, column"),
    ],
)
def test_a_syntax_error_has_its_place(tmp_path: Path, text: str, place: str) -> None:
    message = refusal(tmp_path, text).message
    assert f"not valid TOML at {place}" in message
    assert "(at " not in message


@pytest.mark.parametrize("text", ["a = " + "[" * 100_000, "a = " + "9" * 10_000 + "\n"])
def test_what_breaks_the_parser_is_refused(tmp_path: Path, text: str) -> None:
    assert "too large or nested too deep" in refusal(tmp_path, text).message


@pytest.mark.parametrize(
    ("line", "message", "hint"),
    [
        (
            'level = "ful"',
            '`autodiff.logger.level` is "ful", '
            'expected one of "disabled", "basic", "medium", "full"',
            'did you mean "full"?',
        ),
        ('level = "Full"', '`autodiff.logger.level` is "Full", expected', 'did you mean "full"?'),
        ('level = "7"', '`autodiff.logger.level` is "7", expected one of', None),
        ("level = 3", "`autodiff.logger.level` is 3, expected one of", None),
        ('log = "warn"', '`autodiff.logger.log` is "warn", expected one of "info", ', None),
        ("log = true", "`autodiff.logger.log` is true, expected one of", None),
        ('stdout = "yes"', '`autodiff.logger.stdout` is "yes", not a boolean', "write `true` or"),
        ("stderr = 1", "`autodiff.logger.stderr` is 1, not a boolean", "write `true` or"),
        ("append = [true]", "`autodiff.logger.append` is an array, not a boolean", "write `true`"),
        ("file = false", "`autodiff.logger.file` is false, not a string", "write it in quotes"),
        ("file = { a = 1 }", "`autodiff.logger.file` is a table, not a string", "write it in"),
        (
            r'file = "a\u0000b"',
            r'`autodiff.logger.file` is "a\u0000b", which has a null character',
            "no path can have one",
        ),
    ],
)
def test_a_wrong_value(tmp_path: Path, line: str, message: str, hint: str | None) -> None:
    error = refusal(tmp_path, f"[autodiff.logger]\n{line}\n")
    assert message in error.message
    assert (error.hint is None) if hint is None else (error.hint or "").startswith(hint)


@pytest.mark.parametrize("value", [r'"a\u0000b"', r'["a", "a\u0000b"]'])
def test_a_default_with_a_null_character(value: str, tmp_path: Path) -> None:
    document = parse_toml(f"[ckpt]\nexport = {value}\n")
    defaults = read_defaults(document, {"export": "strings"})
    assert defaults.values == {}
    assert "which has a null character" in defaults.wrong[0].reason


def test_a_file_with_a_null_character_that_the_search_meets_is_passed_over(tmp_path: Path) -> None:
    path = write(tmp_path / "burn.toml", '[autodiff.logger]\nfile = "a\\u0000b"\n')
    found = find_config(tmp_path)
    assert found.path != path
    assert "null character" in found.reports[0]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("autodiff = 3\n", "`autodiff` is 3, not a table"),
        ('[autodiff]\nlogger = "full"\n', '`autodiff.logger` is "full", not a table'),
        ("[[autodiff.logger]]\n", "`autodiff.logger` is an array, not a table"),
    ],
)
def test_a_section_that_is_no_table(tmp_path: Path, text: str, message: str) -> None:
    assert message in refusal(tmp_path, text).message


# Which file the search ends at.


def test_lower_case_before_upper_case(tmp_path: Path) -> None:
    upper = write(tmp_path / "Burn.toml", FULL)
    assert find_config(tmp_path) == FoundConfig(LoggerSettings(level=Level.FULL), upper, ())
    lower = write(tmp_path / "burn.toml", '[autodiff.logger]\nlevel = "basic"\n')
    found = find_config(tmp_path)
    assert found.settings.level is Level.BASIC
    assert found.path == lower


def test_the_nearest_directory_wins(tmp_path: Path) -> None:
    write(tmp_path / "burn.toml", FULL)
    near = write(tmp_path / "a" / "Burn.toml", '[autodiff.logger]\nlevel = "basic"\n')
    deep = tmp_path / "a" / "b" / "c"
    deep.mkdir(parents=True)
    found = find_config(deep)
    assert found.path == near
    assert found.settings.level is Level.BASIC


@pytest.mark.parametrize("text", ["", '[fusion.logger]\nlevel = "full"\n'])
def test_a_file_without_our_section_ends_the_search(tmp_path: Path, text: str) -> None:
    write(tmp_path / "burn.toml", FULL)
    near = write(tmp_path / "a" / "burn.toml", text)
    assert find_config(near.parent) == FoundConfig(LoggerSettings(), near, ())


def test_malformed_files_are_reported_and_passed_over(tmp_path: Path) -> None:
    top = write(tmp_path / "burn.toml", FULL)
    syntax = write(tmp_path / "a" / "Burn.toml", "[autodiff.logger\n")
    value = write(tmp_path / "a" / "b" / "burn.toml", MALFORMED)
    found = find_config(value.parent)
    assert found.settings == LoggerSettings(level=Level.FULL)
    assert found.path == top
    first, second = found.reports
    assert first == (
        f'cubecl config: Ignoring "{value}", which doesn\'t have the right format => '
        '`autodiff.logger.level` is "loud", '
        'expected one of "disabled", "basic", "medium", "full"'
    )
    assert second.startswith(
        f'cubecl config: Ignoring "{syntax}", which doesn\'t have the right format => '
        "not valid TOML at line 1, column 17: "
    )


def test_a_malformed_file_gives_nothing_at_all(tmp_path: Path) -> None:
    write(tmp_path / "burn.toml", f'{FULL}stdout = "yes"\n')
    found = find_config(tmp_path)
    assert found.settings == LoggerSettings()
    assert found.path is None
    assert len(found.reports) == 1


def test_the_other_name_is_tried_after_a_malformed_file(tmp_path: Path) -> None:
    write(tmp_path / "burn.toml", MALFORMED)
    upper = tmp_path / "Burn.toml"
    if upper.exists():
        pytest.skip("the file system does not tell the two names apart")
    write(upper, FULL)
    found = find_config(tmp_path)
    assert found.path == upper
    assert len(found.reports) == 1


def test_a_file_under_both_names_is_reported_once(tmp_path: Path) -> None:
    lower = write(tmp_path / "burn.toml", MALFORMED)
    if not (tmp_path / "Burn.toml").exists():
        os.link(lower, tmp_path / "Burn.toml")
    assert len(find_config(tmp_path).reports) == 1


def test_what_cannot_be_read_is_passed_over_in_silence(tmp_path: Path) -> None:
    top = write(tmp_path / "burn.toml", FULL)
    (tmp_path / "a" / "burn.toml").mkdir(parents=True)
    (tmp_path / "a" / "b").mkdir()
    (tmp_path / "a" / "b" / "burn.toml").write_bytes(b"\xff\xfe[autodiff.logger]\n")
    found = find_config(tmp_path / "a" / "b")
    assert found == FoundConfig(LoggerSettings(level=Level.FULL), top, ())


def test_a_relative_start_is_searched_up_to_the_root(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    top = write(tmp_path / "burn.toml", FULL)
    (tmp_path / "a").mkdir()
    monkeypatch.chdir(tmp_path / "a")
    assert find_config(Path()).path == top


@pytest.mark.skipif(os.name == "nt", reason="Windows keeps the working directory from removal")
def test_a_removed_working_directory_gives_the_defaults(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    assert find_config(Path()) == FoundConfig(LoggerSettings(), None, ())


@pytest.mark.skipif(os.name == "nt", reason="Windows has no such names")
def test_a_path_is_reported_in_debug_quotes(tmp_path: Path) -> None:
    directory = tmp_path / 'a "b\\c\nd\x01é'
    write(directory / "burn.toml", MALFORMED)
    (report,) = find_config(directory).reports
    assert r'/a \"b\\c\nd\u{1}é/burn.toml", which' in report


@pytest.mark.skipif(sys.platform != "linux", reason="the file system refuses such names")
def test_a_path_that_is_not_utf8_is_reported_in_printable_characters(tmp_path: Path) -> None:
    directory = Path(os.fsdecode(os.fsencode(tmp_path) + b"/caf\xe9"))
    write(directory / "burn.toml", MALFORMED)
    (report,) = find_config(directory).reports
    assert r'/caf\xE9/burn.toml", which' in report
    report.encode("utf-8")


# The files that stand beside the package.


LOGGERS = [p for p in (ROOT / "configs").glob("*.toml") if not p.name.startswith("seed-")]
"""The others are grids of sweeps."""


@pytest.mark.parametrize("path", sorted(LOGGERS), ids=lambda p: p.name)
def test_ready_files_are_valid_and_say_how_to_use_them(path: Path) -> None:
    purpose, usage = path.read_text(encoding="utf-8").splitlines()[:2]
    assert purpose.startswith("# ")
    assert usage.startswith("# Use it: ckpt ")
    assert usage.endswith(f"--config configs/{path.name}")
    settings = read_config_file(path)
    assert (settings.level is Level.DISABLED) == (path.name == "disabled.toml")


def test_there_are_ready_files() -> None:
    assert len(LOGGERS) >= 5


def test_the_example_has_the_defaults() -> None:
    assert read_config_file(ROOT / "burn.toml.example") == LoggerSettings()


def test_the_example_has_every_key(tmp_path: Path) -> None:
    lines = (ROOT / "burn.toml.example").read_text(encoding="utf-8").splitlines()
    text = "\n".join(line[1:] if line.startswith(("#file", "#log")) else line for line in lines)
    for key in LoggerSettings.__dataclass_fields__:
        assert f"\n{key} = " in text
    assert read(tmp_path, text) == LoggerSettings(file=Path("logs/autodiff.log"), log="info")


def test_the_examples_in_the_documentation_are_valid(tmp_path: Path) -> None:
    blocks = (ROOT / "docs" / "burn-toml.md").read_text(encoding="utf-8").split("```toml\n")[1:]
    assert len(blocks) == 2
    for block in blocks:
        assert read(tmp_path, block.partition("```")[0]).level > Level.DISABLED


def test_no_heavy_import() -> None:
    code = (
        "import sys, ckptcli.config, ckptcli.report.log_sinks\n"
        "print(sorted({'click', 'rich', 'numpy'} & set(sys.modules)))"
    )
    shown = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT
    )
    assert shown.stdout == "[]\n"


def test_names_are_tried_in_burns_order() -> None:
    assert FILE_NAMES == ("burn.toml", "Burn.toml")
