"""Whether a ``style`` takes an element out of sight (B6).

A declaration is read as a property and a value; the property decides which values hide. A value that only a
stylesheet knows (``var()``) counts as hiding.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable

_COMMENT = re.compile(r"/\*(.*?)(?:\*/|\Z)", re.DOTALL)
_ESCAPE = re.compile(r"\\(?:([0-9a-fA-F]{1,6})\s?|(.))", re.DOTALL)
_IMPORTANT = re.compile(r"!\s*important\b")
_NUMBER = re.compile(r"(?<![\w.#])([-+]?(?:\d++\.?\d*|\.\d+)(?:e[-+]?\d+)?)(%|[a-z]*+)")
_FUNCTION = re.compile(r"(?<![a-z0-9-])([a-z0-9-]++)\(([^()]*)")
_FONT = re.compile(r"(?<![\w.])((?:\d++\.?\d*|\.\d+)(?:[a-z]++|%)|0++\.?0*)(?:\s*/\s*(\S+))?")
_HEX = re.compile(r"#([0-9a-f]{3,4}|[0-9a-f]{6}|[0-9a-f]{8})")
_PIXELS = {"px": 1.0, "pt": 1.33, "pc": 16.0, "in": 96.0, "cm": 37.8, "mm": 3.78, "q": 0.94}
_LETTER = 16.0  # pixels of one em, as far as is known here
_SMALLEST = 4.0  # pixels in which a letter can be read
_FAR, _FAR_BACK = 1000.0, -100.0  # pixels out of the page
_FAINT = 0.1
_CONTRAST = 1.25  # as WCAG counts it: less is not seen, unless the hue is another
_HUE = 60
_MOST_PLACES = 8
_NAMED = {
    "black": "#000000", "silver": "#c0c0c0", "gray": "#808080", "grey": "#808080", "white": "#ffffff",
    "maroon": "#800000", "red": "#ff0000", "purple": "#800080", "green": "#008000", "lime": "#00ff00",
    "olive": "#808000", "yellow": "#ffff00", "navy": "#000080", "blue": "#0000ff", "teal": "#008080",
    "aliceblue": "#f0f8ff", "azure": "#f0ffff", "beige": "#f5f5dc", "cornsilk": "#fff8dc",
    "floralwhite": "#fffaf0", "ghostwhite": "#f8f8ff", "honeydew": "#f0fff0", "ivory": "#fffff0",
    "lavenderblush": "#fff0f5", "lightcyan": "#e0ffff", "lightgoldenrodyellow": "#fafad2",
    "lightyellow": "#ffffe0", "linen": "#faf0e6", "mintcream": "#f5fffa", "oldlace": "#fdf5e6",
    "seashell": "#fff5ee", "snow": "#fffafa", "whitesmoke": "#f5f5f5", "canvas": "#ffffff",
    "transparent": "#ffffff00",
}  # fmt: skip


class _Colour(NamedTuple):
    red: float
    green: float
    blue: float
    alpha: float = 1.0


_WHITE = _Colour(255, 255, 255)


def hides(style: str) -> bool:
    """Whether a ``style`` takes an element out of sight: also spelled with comments, escapes and blanks."""
    declared = _declarations(style)  # all of them: the last one counts, or an important one before it
    if any(_hides(name, value) for name, value in declared):
        return True
    behind = list(dict.fromkeys(value for name, value in declared if name in ("background", "background-color")))
    colours = dict.fromkeys(value for name, value in declared if name in ("color", "-webkit-text-fill-color"))
    return any(hides_colour(colour, place) for colour in colours for place in behind[:_MOST_PLACES] or [""])


def hides_colour(value: str, background: str = "") -> bool:
    """Whether letters of this colour are not seen before ``background``, or a white page if that is not known."""
    value = value.strip().lower()
    if "var(" in value:
        return True
    if background and value == background.strip().lower():
        return True
    colour, behind = _colour(value), _colour(background.strip().lower()) or _WHITE
    if colour is None:
        return "(" in value  # a function that chooses or mixes
    if behind.alpha < 0.5:
        behind = _WHITE
    if colour.alpha < _FAINT:
        return True
    dark, light = sorted((_light(colour), _light(behind)))
    hue = max(abs(a - b) for a, b in zip(colour[:3], behind[:3], strict=True))
    return (light + 0.05) / (dark + 0.05) < _CONTRAST and hue < _HUE


def style_words(style: str) -> str:
    """The parts of a ``style`` that mean nothing to a browser: comments, strings, what is no declaration."""
    parts = [match[1] for match in _COMMENT.finditer(style)]
    for piece in _COMMENT.sub("", style).split(";"):
        name, colon, value = piece.partition(":")
        if not colon or "--" in name or '"' in value or "'" in value or " " in name.strip():
            parts.append(piece)
    return " ".join(" ".join(parts).split())


def _declarations(style: str) -> list[tuple[str, str]]:
    plain = _ESCAPE.sub(_character, _COMMENT.sub("", style)).lower()
    pairs = (piece.partition(":") for piece in _IMPORTANT.sub("", plain).split(";"))
    return [(name.strip(), " ".join(value.split())) for name, colon, value in pairs if colon]


def _character(match: re.Match[str]) -> str:
    number = int(match[1], 16) if match[1] else 0
    return match[2] or (chr(number) if number <= 0x10FFFF else "")


def _hides(name: str, value: str) -> bool:
    rule = _RULES.get(name)
    return rule is not None and ("var(" in value or rule(value))


def _lengths(value: str) -> list[float]:
    """Every length in ``value`` in pixels, about. A whole of what surrounds it (``100%``) counts as 100."""
    return [
        float(number) * (_PIXELS.get(unit, _LETTER) if unit and unit != "%" else 1.0)
        for number, unit in _NUMBER.findall(value)
    ]


def _numbers(value: str) -> list[float]:
    return [float(number) / (100 if unit == "%" else 1) for number, unit in _NUMBER.findall(value)]


def _is(*words: str) -> Callable[[str], bool]:
    return lambda value: value in words


def _is_not(*words: str) -> Callable[[str], bool]:
    common = {"", "inherit", "initial", "unset", "revert", *words}
    return lambda value: value not in common


def _is_small(value: str) -> bool:
    if "%" in value:
        return any(number < 0.25 for number in _numbers(value))
    return any(length < _SMALLEST for length in _lengths(value))


def _is_flat(value: str) -> bool:
    return any(abs(number) <= _FAINT for number in _numbers(value))


def _is_far(value: str) -> bool:
    return any(length >= _FAR or length <= _FAR_BACK for length in _lengths(value))


def _is_outside(value: str) -> bool:
    """Far, or as far as what surrounds it is large."""
    return _is_far(value) or any(
        unit == "%" and abs(float(number)) >= 100 for number, unit in _NUMBER.findall(value)
    )


def _is_tight(value: str) -> bool:
    return any(length <= -_SMALLEST or length >= _FAR for length in _lengths(value))


def _is_small_font(value: str) -> bool:
    size = _FONT.search(value)
    if size is None:
        return False
    return _is_small(size[1]) or (size[2] is not None and _is_flat(size[2]))


def _is_moved(value: str) -> bool:
    for function, arguments in _FUNCTION.findall(value):
        if function.startswith("matrix") or function in ("rotatex", "rotatey", "rotate3d"):
            return True
        if function.startswith("scale") and _is_flat(arguments):
            return True
        if _is_outside(arguments) and not function.startswith(("scale", "rotate", "skew")):
            return True
    return False


def _is_filtered(value: str) -> bool:
    functions = _FUNCTION.findall(value)
    return any(f == "blur" or (f in ("opacity", "contrast") and _is_flat(arguments)) for f, arguments in functions)


_RULES: dict[str, Callable[[str], bool]] = {
    "display": _is("none"),
    "visibility": _is("hidden", "collapse"),
    "content-visibility": _is("hidden"),
    "opacity": lambda value: any(number < _FAINT for number in _numbers(value)),
    "z-index": lambda value: any(number < 0 for number in _numbers(value)),
    "font": _is_small_font,
    "transform": _is_moved,
    "-webkit-transform": _is_moved,
    "filter": _is_filtered,
    "-webkit-filter": _is_filtered,
    "clip": _is_not("auto"),
    **dict.fromkeys(("clip-path", "-webkit-clip-path", "mask", "-webkit-mask"), _is_not("none")),
    **dict.fromkeys(("mask-image", "-webkit-mask-image", "-webkit-text-security"), _is_not("none")),
    **dict.fromkeys(("line-clamp", "-webkit-line-clamp"), _is_not("none")),
    **dict.fromkeys(("zoom", "scale", "line-height"), _is_flat),
    "font-size": _is_small,
    **dict.fromkeys(("width", "height", "max-width", "max-height"), _is_small),
    **dict.fromkeys(("inline-size", "block-size", "max-inline-size", "max-block-size"), _is_small),
    **dict.fromkeys(("letter-spacing", "word-spacing"), _is_tight),
    **dict.fromkeys(("text-indent", "left", "top", "right", "bottom", "translate"), _is_outside),
    "rotate": lambda value: any(axis in value.split() for axis in ("x", "y")),
    **dict.fromkeys(("border", "border-width", "border-top", "border-left"), _is_far),
    **{
        f"{name}{side}": _is_far
        for name in ("margin", "padding", "inset")
        for side in (
            "", "-left", "-right", "-top", "-bottom", "-block", "-inline",
            "-inline-start", "-inline-end", "-block-start", "-block-end",
        )
    },
}  # fmt: skip


def _colour(value: str) -> _Colour | None:
    value = _NAMED.get(value, value)
    if match := _HEX.fullmatch(value):
        digits = match[1] if len(match[1]) > 4 else "".join(digit * 2 for digit in match[1])
        channels = [int(digits[at : at + 2], 16) for at in range(0, len(digits), 2)]
        return _Colour(*channels[:3], *(channel / 255 for channel in channels[3:]))
    return _colour_function(value)


def _light(colour: _Colour) -> float:
    weighed = zip((0.2126, 0.7152, 0.0722), colour[:3], strict=True)
    return sum(weight * (min(max(channel, 0), 255) / 255) ** 2.2 for weight, channel in weighed)


def _colour_function(value: str) -> _Colour | None:
    match = _FUNCTION.match(value)
    found = _NUMBER.findall(match[2]) if match else []
    if match is None or len(found) < 3:
        return None
    alpha = _numbers("".join(found[3]))[0] if len(found) > 3 else 1.0
    first, second, third = (float(number) for number, _ in found[:3])
    if match[1].startswith("rgb"):
        scale = 2.55 if found[0][1] == "%" else 1.0
        return _Colour(first * scale, second * scale, third * scale, alpha)
    if match[1].startswith("hsl"):
        return _Colour(third * 2.55, third * 2.55, third * 2.55, alpha)
    if match[1].startswith("hwb"):
        return _Colour(second * 2.55, second * 2.55, second * 2.55, alpha)
    lightness = first if found[0][1] == "%" or first > 1 else first * 100  # lab, lch, oklab, oklch
    return _Colour(lightness * 2.55, lightness * 2.55, lightness * 2.55, alpha)
