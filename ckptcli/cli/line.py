"""How a command was called: which options stand on the command line, and where others come from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from click.core import ParameterSource

from ckptcli.config import FoundConfig
from ckptcli.options.option import Option
from ckptcli.options.origins import ENVIRONMENT, FILE, FLAG

ORIGINS = {
    ParameterSource.COMMANDLINE: FLAG,
    ParameterSource.ENVIRONMENT: ENVIRONMENT,
    ParameterSource.DEFAULT_MAP: FILE,
}


@dataclass(frozen=True, slots=True)
class Line:
    """How a command was called, beside the values of its options.

    Attributes:
        options: those of the command.
        origins: name -> where its value comes from: flag, environment, file or default.
        found: the burn.toml that the command works with.
        words: the line as it was typed, `ckpt` first.
    """

    options: Sequence[Option]
    origins: Mapping[str, str]
    found: FoundConfig
    words: Sequence[str] = ()

    @property
    def given(self) -> frozenset[str]:
        """The names of the options that stand on the command line."""
        return frozenset(name for name, origin in self.origins.items() if origin == FLAG)
