"""Writes drawings as SVG text.

The background is transparent. Text outside boxes is grey. Its contrast to white and to the dark background of GitHub (#0d1117) is above 4 to 1. Text
in a box is dark or white, whichever has the higher contrast to the colour of the box.
"""
import html

INK, LINE, PANEL, DARK = "#747d87", "#8c959f", "#f3f5f8", "#1b1f24"
# Colours of the categories of memory. lib/Report/ReportPage.html uses the same colours.
CATEGORIES = {"parameters": "#4477aa", "gradients": "#cc6677", "optimizer": "#8877bb", "activations": "#ddaa33",
              "gathered": "#44aa99", "staging": "#aa4466", "workspace": "#999933", "inputs": "#88ccee",
              "control": "#888888"}
RANKS = ["#4477aa", "#ddaa33", "#44aa99", "#cc6677", "#8877bb", "#999933", "#88ccee", "#aa4466"]
# Width of a character divided by the font size. The value applies to the widest of the usual fonts.
MONO, SANS = 0.61, 0.6
STYLE = """text { font-family: system-ui, 'DejaVu Sans', sans-serif; white-space: pre }
.mono { font-family: ui-monospace, Menlo, 'DejaVu Sans Mono', monospace }"""


def number(value):
    """Returns a coordinate as text, rounded to a tenth of a pixel."""
    return f"{value:.1f}".removesuffix(".0")


def size(count):
    """Returns a number of bytes as text, such as "12.5 KiB"."""
    for unit in ("B", "KiB", "MiB", "GiB"):
        if count < 1024 or unit == "GiB":
            return f"{count:.0f} B" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1024


def contrast(fill):
    """Returns the colour of a text in a box that has the colour `fill`."""
    parts = [int(fill[i:i + 2], 16) / 255 for i in (1, 3, 5)]
    red, green, blue = (c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts)
    return DARK if 0.2126 * red + 0.7152 * green + 0.0722 * blue > 0.19 else "#ffffff"


def width_of(text, font=12, mono=False):
    return len(text) * font * (MONO if mono else SANS)


class Drawing:
    def __init__(self, width, title):
        self.width, self.height, self.title, self.body = width, 0, title, []

    def reach(self, y):
        self.height = max(self.height, y)

    def rect(self, x, y, width, height, fill, stroke="none", tip="", radius=0, dash="", opacity=1):
        extra = "".join(f' {name}="{value}"' for name, value in (
            ("rx", radius), ("stroke-dasharray", dash), ("fill-opacity", opacity if opacity != 1 else "")) if value)
        stroke = f' stroke="{stroke}"' if stroke != "none" else ""
        end = f"><title>{html.escape(tip)}</title></rect>" if tip else "/>"
        self.body.append(f'<rect x="{number(x)}" y="{number(y)}" width="{number(width)}" height="{number(height)}" '
                         f'fill="{fill}"{stroke}{extra}{end}')
        self.reach(y + height)

    def text(self, x, y, text, font=12, fill=INK, anchor="start", bold=False, mono=False, turn=0):
        """Draws a text whose baseline is at y."""
        extra = "".join((' class="mono"' if mono else "", ' font-weight="bold"' if bold else "",
                         f' text-anchor="{anchor}"' if anchor != "start" else "",
                         f' transform="rotate({turn} {number(x)} {number(y)})"' if turn else ""))
        self.body.append(f'<text x="{number(x)}" y="{number(y)}" font-size="{font}" fill="{fill}"{extra}>'
                         f"{html.escape(text)}</text>")
        if not turn:
            self.reach(y + font / 3)

    def line(self, points, stroke=LINE, width=1, dash="", arrow=False):
        path = "M" + "L".join(f"{number(x)} {number(y)}" for x, y in points)
        extra = (f' stroke-dasharray="{dash}"' if dash else "") + (' marker-end="url(#arrow)"' if arrow else "")
        self.body.append(f'<path d="{path}" fill="none" stroke="{stroke}" stroke-width="{width}"{extra}/>')
        self.reach(max(y for _, y in points))

    def label(self, x, y, width, height, text, fill, font=11, mono=False):
        """Draws one of the texts in the centre of a box that has already been drawn. Draws the first of the texts that fits into the box. Draws
        nothing if no text fits."""
        for choice in [text] if isinstance(text, str) else text:
            if width_of(choice, font, mono) <= width - 4 and font <= height - 2:
                self.text(x + width / 2, y + height / 2 + font * 0.36, choice, font, contrast(fill), "middle",
                          mono=mono)
                return

    def box(self, x, y, width, height, text, fill, font=11, tip="", stroke="none", mono=False):
        self.rect(x, y, width, height, fill, stroke, tip or text, radius=2)
        self.label(x, y, width, height, text, fill, font, mono)

    def legend(self, x, y, entries, right):
        """Draws a legend of entries (colour, text). The entries are placed in rows that begin at x and end before `right`. Returns the y below the
        legend."""
        at = x
        for fill, text in entries:
            wide = 18 + width_of(text) + 14
            if at > x and at + wide > right:
                at, y = x, y + 19
            self.rect(at, y, 12, 12, fill, LINE if fill == "url(#padding)" else "none")
            self.text(at + 18, y + 10.5, text)
            at += wide
        return y + 20

    def __str__(self):
        height = number(self.height + 10)
        defs = (f'<defs><marker id="arrow" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" '
                f'orient="auto"><path d="M0 0L8 4L0 8z" fill="{LINE}"/></marker>'
                f'<pattern id="padding" width="6" height="6" patternUnits="userSpaceOnUse" '
                f'patternTransform="rotate(45)"><rect width="6" height="6" fill="{PANEL}"/>'
                f'<rect width="2" height="6" fill="{LINE}"/></pattern></defs>')
        return "\n".join([f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {self.width} {height}" '
                          f'width="{self.width}" height="{height}" role="img">',
                          f"<title>{html.escape(self.title)}</title>", f"<style>{STYLE}</style>", defs,
                          *self.body, "</svg>"]) + "\n"
