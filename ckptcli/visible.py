r"""Text of others as it is shown, on a terminal, a page or in a cell: one line that hides nothing.

A name in a record, a graph file or a path may hold line breaks, escape sequences, control
characters of either range, marks that turn the direction of what follows, or characters without
width. Each is shown as Python writes it, `\x0a`, `\x1b` or `\u202e`. JSON alone has such a text as
it is.

Invariant: what comes out has printable characters alone, and those of `keep`; it comes out as it
is if it goes in again.
"""

from __future__ import annotations

import re

HIDDEN = (
    "[\x00-\x1f\x7f-\x9f\xad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"
    "\ufffe\uffff\ud800-\udfff\U000e0000-\U000e007f]"
)
"""Controls, marks of direction, characters without width, ends of lines, halves of a pair, and what
is no character: a pattern, which a help text does not compile."""


def visible(text: str, keep: str = "") -> str:
    """`text` with everything that is not seen written out, but for the characters of `keep`.

    `keep` is for text of our own, whose parts are visible already.
    """
    return re.sub(HIDDEN, lambda found: _written(found.group(), keep), text)


def _written(character: str, keep: str) -> str:
    if character in keep:
        return character
    code = ord(character)
    if 0xDC80 <= code <= 0xDCFF:  # a byte of a path that is no text
        return f"\\x{code - 0xDC00:02x}"
    if code < 0x100:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
