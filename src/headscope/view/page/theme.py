"""Figures that follow the theme of the page: in the dark theme, greys, white and black are inverted.

Colours with a hue stay as they are, and so do the cells of heatmaps, whose colours are numbers.
"""

import re

GROUND_AND_INK = (0x14, 0x17, 0x1B), (0xE6, 0xE9, 0xED)
"""The colours that replace white and black in the dark theme: the background and the text (``page.css``)."""

_GREY = re.compile(r"\b(fill|stroke)(: ?|=\")(#([0-9a-f]{2})\4\4)\b")
_NOT_CELLS = {"fill": ":not([id^=QuadMesh] *)", "stroke": ""}
"""CSS selectors that leave out the cells of heatmaps and colour bars, by their names in matplotlib, but not lines."""


def follow_theme(svg: str) -> str:
    """Return the SVG of a matplotlib figure with rules for a dark theme; an SVG without greys or text is unchanged."""
    rules = []
    for name, separator, grey, level in sorted(set(_GREY.findall(svg))):
        given = f'[{name}="{grey}"]' if separator.startswith("=") else f'[style*="{name}{separator}{grey}"]'
        rules.append(f"{given}{_NOT_CELLS[name]}{{{name}:{_darken(int(level, 16))}!important}}")
    if "<text" in svg:
        rules.append(f'text:not([style*="fill:"]){{fill:{_darken(0)}}}')  # matplotlib does not write black
    start, end, rest = svg.rpartition("</svg>")
    if not rules or not end:
        return svg
    return f"{start}<style>@media (prefers-color-scheme: dark){{{''.join(rules)}}}</style>{end}{rest}"


def _darken(level: int) -> str:
    """Return the colour of a grey in the dark theme: black becomes the colour of text, white the background."""
    ends = zip(*GROUND_AND_INK, strict=True)
    return "#" + "".join(f"{round(ink + (ground - ink) * level / 255):02x}" for ground, ink in ends)
