"""A badge: a name and a value in a small colored box, as SVG."""

from html import escape

from profkit.ui.text import literal

_CHARACTER = 6.6  # pixels, the mean width in DejaVu Sans at 11 pixels


def badge_svg(name: str, words: str, color: str) -> str:
    """The box, as wide as its words."""
    left, right = (round(_CHARACTER * len(text)) + 12 for text in (name, words))
    words, name = escape(literal(words)), escape(name)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{left + right}" height="20" '
        f'role="img" aria-label="{name}: {words}">\n'
        f'  <rect width="{left}" height="20" fill="{color}"/>\n'
        f'  <rect x="{left}" width="{right}" height="20" fill="#37474f"/>\n'
        '  <g fill="#fff" font-family="DejaVu Sans,Verdana,sans-serif" font-size="11" '
        'text-anchor="middle">\n'
        f'    <text x="{left / 2:g}" y="14">{name}</text>\n'
        f'    <text x="{left + right / 2:g}" y="14">{words}</text>\n'
        "  </g>\n</svg>\n"
    )
