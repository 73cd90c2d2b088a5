"""The screen that the options stand for."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from ckptcli.cli.streams import has_glyphs, screen_width, use_color
from ckptcli.options.output import ScreenOptions

if TYPE_CHECKING:
    from ckptcli.report.screen import Screen


def open_screen(options: ScreenOptions) -> Screen:
    """What stdout can show, as the options say."""
    from ckptcli.report.screen import Screen

    return Screen(
        options.width or screen_width(sys.stdout),
        use_color(options.color, sys.stdout),
        has_glyphs(sys.stdout),
    )
