"""Figures that follow the theme of the page: in the dark one their greys, white and black are exchanged.

What has a hue keeps it, and so do the cells of heatmaps, whose colours are numbers.
"""

import re

GROUND_AND_INK = (0x14, 0x17, 0x1B), (0xE6, 0xE9, 0xED)
"""What white and black become: the ground and the ink of the page's dark theme (``page.css``)."""

_GREY = re.compile(r"\b(fill|stroke)(: ?|=\")(#([0-9a-f]{2})\4\4)\b")
_NOT_CELLS = {"fill": ":not([id^=QuadMesh] *)", "stroke": ""}
"""All but the cells of heatmaps and colour bars, as matplotlib names them; the lines between cells are like others."""


def follow_theme(svg: str) -> str:
    """A figure of matplotlib that a browser shows dark where the reader's theme is dark; another SVG as it is."""
    rules = []
    for name, separator, grey, level in sorted(set(_GREY.findall(svg))):
        given = f'[{name}="{grey}"]' if separator.startswith("=") else f'[style*="{name}{separator}{grey}"]'
        rules.append(f"{given}{_NOT_CELLS[name]}{{{name}:{_darken(int(level, 16))}!important}}")
    if "<text" in svg:
        rules.append(f'text:not([style*="fill:"]){{fill:{_darken(0)}}}')  # matplotlib leaves out what is black
    start, end, rest = svg.rpartition("</svg>")
    if not rules or not end:
        return svg
    return f"{start}<style>@media (prefers-color-scheme: dark){{{''.join(rules)}}}</style>{end}{rest}"


def _darken(level: int) -> str:
    """The colour of a grey in the dark theme, between the ink that black becomes and the ground that white becomes."""
    ends = zip(*GROUND_AND_INK, strict=True)
    return "#" + "".join(f"{round(ink + (ground - ink) * level / 255):02x}" for ground, ink in ends)
