"""The environment variables that set options, `CKPT_MAX_TIME` for `--max-time`.

`_CKPT_COMPLETE`, by which a shell asks for completions, is none of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ckptcli.errors import nearest_name

PREFIX = "CKPT_"


def variable_of(key: str) -> str:
    """The variable of an option by its long name."""
    return PREFIX + key.replace("-", "_").upper()


def values_in(text: str, has_blanks: bool) -> list[str]:
    """The values that a variable gives an option that takes several: words, but of values that may
    have blanks the parts between `;` or ends of lines.
    """
    if not has_blanks:
        return text.split()
    parts = (part.strip() for line in text.splitlines() for part in line.split(";"))
    return [part for part in parts if part]


def unknown_variables(names: Iterable[str], keys: Iterable[str]) -> Iterator[str]:
    """A sentence for each of the variables `names` that has our prefix and stands for no key."""
    known = {variable_of(key): key for key in keys}
    for name in sorted(names):
        if name.startswith(PREFIX) and name not in known:
            written = name.removeprefix(PREFIX).replace("_", "-")
            nearest = nearest_name(written, known.values())
            hint = f"; did you mean `{variable_of(nearest)}`?" if nearest else ""
            yield f"environment variable `{name}` is no setting{hint}"
