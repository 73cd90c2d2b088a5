"""Colours and style sheets, light and dark.

Pictures carry the light colours in their attributes, for programs that read no style sheet; a style
sheet only changes them for the dark. Meaning never hangs on colour alone: lines differ in dashes,
cells in letters, verdicts in words.
"""

from __future__ import annotations

from collections.abc import Mapping

from ckptcli.report.looks import FATES, OTHER, TONES, WHYS, why_look

INK, PAPER, QUIET = "#1f2328", "#ffffff", "#59636e"
DARK_INK, DARK_PAPER, DARK_QUIET = "#e6edf3", "#0d1117", "#9198a1"

SERIES = (
    ("#0969da", "#58a6ff"),
    ("#bc4c00", "#f0883e"),
    ("#1a7f37", "#3fb950"),
    ("#8250df", "#bc8cff"),
    ("#cf222e", "#ff7b72"),
    ("#0f6e84", "#39c5cf"),
    ("#bf3989", "#f778ba"),
    ("#7d6200", "#d2b322"),
    ("#424a53", "#afb8c1"),
    ("#3b3fb8", "#a5b0ff"),
    ("#0a5c4a", "#7ce0c3"),
    ("#7a2f4b", "#ffb3c7"),
)
"""A colour for each strategy, light and dark."""

DASHES = (None, "7 4", "2 3", "9 3 2 3", "4 2", "1 4", "12 4")


def series_color(index: int) -> str:
    """The light colour of a strategy."""
    return SERIES[index % len(SERIES)][0]


def series_class(index: int) -> str:
    """The class that gives a strategy its dark colour."""
    return f"series{index % len(SERIES)}"


def series_dash(index: int) -> str | None:
    """The dashes of a strategy's line; strategies of one colour differ in them."""
    return DASHES[(index + index // len(SERIES)) % len(DASHES)]


def why_class(why: str) -> str:
    """The class of what a storage is."""
    names = [*WHYS, OTHER]
    return f"why{names.index(why if why in WHYS else OTHER)}"


def picture_style() -> str:
    """What inline pictures need: hovering, and the dark colours."""
    return (
        "svg{font-family:system-ui,-apple-system,Segoe UI,Helvetica,Arial,sans-serif}"
        ".slot:hover{fill-opacity:.12}"
        f"@media (prefers-color-scheme:dark){{{_dark_picture()}}}"
    )


def _dark_picture() -> str:
    series = "".join(
        f".line.series{i}{{stroke:{dark}}}.area.series{i}{{fill:{dark}}}"
        for i, (_, dark) in enumerate(SERIES)
    )
    return (
        f".paper{{fill:{DARK_PAPER}}}.ink{{fill:{DARK_INK}}}.rule{{stroke:{DARK_QUIET}}}"
        f".quiet{{fill:{DARK_QUIET}}}.halo{{stroke:{DARK_PAPER}}}.slot{{fill:{DARK_INK}}}{series}"
    )


def page_style() -> str:
    """The style sheet of a page, pictures included."""
    light = {f"fate-{name}": look.light for name, look in FATES.items()}
    dark = {f"fate-{name}": look.dark for name, look in FATES.items()}
    light |= {why_class(why): why_look(why).light for why in (*WHYS, OTHER)}
    dark |= {why_class(why): why_look(why).dark for why in (*WHYS, OTHER)}
    light |= {f"swatch.series{i}": colors[0] for i, colors in enumerate(SERIES)}
    dark |= {f"swatch.series{i}": colors[1] for i, colors in enumerate(SERIES)}
    return (
        f"{_LIGHT}{_PAGE}{_backgrounds(light)}{_inks({t.name: t.light for t in TONES})}"
        f"{picture_style()}@media (prefers-color-scheme:dark){{{_DARK}{_backgrounds(dark)}"
        f"{_inks({t.name: t.dark for t in TONES})}}}"
    )


def _backgrounds(colors: Mapping[str, str]) -> str:
    return "".join(f".{name}{{background:{color}}}" for name, color in colors.items())


def _inks(colors: Mapping[str, str]) -> str:
    return "".join(f".word.{name}{{color:{color}}}" for name, color in colors.items())


_LIGHT = (
    f":root{{color-scheme:light dark;--ink:{INK};--paper:{PAPER};--quiet:{QUIET};"
    "--raised:#f6f8fa;--border:#d1d9e0}"
)
_DARK = (
    f":root{{--ink:{DARK_INK};--paper:{DARK_PAPER};--quiet:{DARK_QUIET};"
    "--raised:#151b23;--border:#3d444d}"
)
_PAGE = """
*{box-sizing:border-box}
body{margin:0 auto;max-width:78rem;padding:1.5rem 1.25rem 4rem;background:var(--paper);
color:var(--ink);font:16px/1.5 system-ui,-apple-system,Segoe UI,Helvetica,Arial,sans-serif}
h1{font-size:1.6rem;line-height:1.25;margin:.2rem 0 .3rem}
h2{font-size:1.2rem;margin:2.4rem 0 .5rem}
h3{font-size:1rem;margin:1.1rem 0 .35rem}
p{margin:.4rem 0}
h1,h3,p,li,dd{overflow-wrap:anywhere}
.kind{color:var(--quiet);font-size:.85rem;letter-spacing:.02em;margin:0}
.quiet{color:var(--quiet)}
.small{font-size:.875rem}
code,pre{font:.84rem/1.5 ui-monospace,SFMono-Regular,Menlo,Consolas,monospace}
pre{background:var(--raised);border:1px solid var(--border);border-radius:6px;padding:.7rem .85rem;
margin:.5rem 0;overflow-x:auto}
pre.wrap{white-space:pre-wrap;overflow-wrap:anywhere}
.cards{display:grid;gap:.75rem;margin:1.1rem 0 0;
grid-template-columns:repeat(auto-fit,minmax(min(100%,22rem),1fr))}
.card{border:1px solid var(--border);border-radius:8px;background:var(--raised);
padding:.75rem .95rem}
.card h3{margin:0;display:flex;gap:.5rem;align-items:baseline;flex-wrap:wrap}
.card p{margin:.3rem 0 0;font-size:.93rem}
.word{font-weight:600}
.swatch{display:inline-block;flex:none;width:.75rem;height:.75rem;border-radius:3px}
.wide{overflow-x:auto}
table{border-collapse:collapse;width:100%;font-size:.86rem;font-variant-numeric:tabular-nums}
th,td{padding:.45rem .5rem;text-align:right;border-bottom:1px solid var(--border);
white-space:nowrap;vertical-align:top}
th:last-child,td:last-child{padding-right:0}
th{color:var(--quiet);font-weight:600;vertical-align:bottom}
th.text,td.text{text-align:left}
th:first-child,td:first-child{text-align:left;padding-left:0;position:sticky;left:0;
background:var(--paper)}
td:first-child{font-weight:600}
td .low{display:block;white-space:normal;width:max-content;max-width:8.5rem;margin-left:auto;
color:var(--quiet);font-size:.78rem;font-weight:400}
figure{margin:.4rem 0 0}
figure svg{display:block;width:100%;height:auto}
figure.timeline svg,figure.samples svg{min-width:46rem}
figure.scatter{max-width:42rem}
figure.timeline,figure.samples{max-width:66rem}
figure.scatter svg{min-width:26rem}
figcaption{color:var(--quiet);font-size:.875rem;margin-top:.3rem}
.legend{display:flex;flex-wrap:wrap;gap:.25rem 1rem;margin:.5rem 0;padding:0;list-style:none;
font-size:.875rem}
.legend li{display:flex;gap:.4rem;align-items:center}
.strip{display:flex;flex-wrap:wrap;gap:3px;margin:.3rem 0 0;padding:0;list-style:none}
.node{display:inline-flex;flex-direction:column;align-items:center;justify-content:center;
width:2.1rem;height:2.3rem;border:1px solid var(--border);border-radius:5px;
font-size:.82rem;line-height:1.1;font-weight:600;cursor:default}
.node small{font-weight:400;font-size:.66rem}
.node:hover{outline:2px solid var(--ink)}
.legend .node{width:1.5rem;height:1.5rem}
.dense{gap:1px}
.dense .node{width:.95rem;height:1.05rem;font-size:.66rem;border-radius:2px}
.fate-dropped{border-style:dashed}
.peak{display:flex;height:1.7rem;border-radius:5px;overflow:hidden}
.peak span{display:block;overflow:hidden;white-space:nowrap;font-size:.75rem;line-height:1.7rem;
padding:0 .3rem;min-width:0}
.peak span.thin{padding:0}
.why{display:inline-block;width:.75rem;height:.75rem;border-radius:3px}
details{margin:.5rem 0}
summary{cursor:pointer}
details pre{max-height:24rem;overflow:auto}
dl{display:grid;grid-template-columns:max-content 1fr;gap:.2rem 1rem;margin:.5rem 0;
font-size:.9rem}
dt{color:var(--quiet)}
dd{margin:0}
.warnings{font-size:.93rem;padding-left:1.3rem}
.warnings li{margin:.25rem 0}
footer{margin-top:3rem;padding-top:.8rem;border-top:1px solid var(--border);
color:var(--quiet);font-size:.85rem}
@media (max-width:40rem){body{padding:1rem .85rem 3rem}h1{font-size:1.35rem}}
@media print{body{max-width:none}details pre{max-height:none}}
"""
