"""Draws predicted against measured values: a scatter plot with logarithmic axes, as SVG text."""
import collections
import math

SIZE, LEFT, TOP, RIGHT, BOTTOM = 560, 70, 20, 20, 56
GIB = 2**30

# What is drawn: its unit, how far the dashed lines are off, its words, a colour for each series.
Look = collections.namedtuple("Look", "unit off title measured predicted colours")
MEMORY = Look(GIB, 0.05, "Predicted against measured peaks of GPU memory", "measured peak of a step, GiB",
              "predicted peak, GiB", {"allocated": "#2a6f97", "reserved": "#e07a5f"})


class Axis:
    """Values to pixels, the same on both sides, so that the diagonal is exact."""

    def __init__(self, values, unit):
        self.unit = unit
        self.low, self.high = math.log(min(values) * 0.85), math.log(max(values) * 1.18)

    def part(self, value):
        return (math.log(value) - self.low) / (self.high - self.low)

    def x(self, value):
        return LEFT + SIZE * self.part(value)

    def y(self, value):
        return TOP + SIZE * (1 - self.part(value))

    def ticks(self):
        """1, 2, 5 times powers of ten, in the unit."""
        all_ticks = [digit * 10.0**power * self.unit for power in range(-6, 7) for digit in (1, 2, 5)]
        return [tick for tick in all_ticks if self.low <= math.log(tick) <= self.high]

    def slanted(self, factor):
        """Ends of the line predicted = factor * measured, inside the frame."""
        low, high = math.exp(self.low), math.exp(self.high)
        return (max(low, low / factor), max(low, low * factor)), (min(high, high / factor), min(high, high * factor))


def line(axis, start, end, style):
    return (f'<line x1="{axis.x(start[0]):.1f}" y1="{axis.y(start[1]):.1f}" '
            f'x2="{axis.x(end[0]):.1f}" y2="{axis.y(end[1]):.1f}" {style}/>')


def text(x, y, words, extra=""):
    return f'<text x="{x:.1f}" y="{y:.1f}"{extra}>{words}</text>'


def grid(axis, off):
    low, high = math.exp(axis.low), math.exp(axis.high)
    for tick in axis.ticks():
        yield line(axis, (tick, low), (tick, high), 'stroke="#e5e5e5"')
        yield line(axis, (low, tick), (high, tick), 'stroke="#e5e5e5"')
        yield text(axis.x(tick), TOP + SIZE + 18, f"{tick / axis.unit:g}", ' text-anchor="middle"')
        yield text(LEFT - 8, axis.y(tick) + 4, f"{tick / axis.unit:g}", ' text-anchor="end"')
    yield line(axis, *axis.slanted(1), 'stroke="#444"')
    for factor in (1 - off, 1 + off):
        yield line(axis, *axis.slanted(factor), 'stroke="#444" stroke-dasharray="5 4" stroke-width="0.7"')
    yield f'<rect x="{LEFT}" y="{TOP}" width="{SIZE}" height="{SIZE}" fill="none" stroke="#444"/>'


def titles(look):
    middle = TOP + SIZE / 2
    yield text(LEFT + SIZE / 2, TOP + SIZE + 44, look.measured, ' text-anchor="middle"')
    yield text(20, middle, look.predicted, f' text-anchor="middle" transform="rotate(-90 20 {middle:.1f})"')


def legend(look, names):
    for number, name in enumerate(names):
        y = TOP + 24 + 20 * number
        yield f'<circle cx="{LEFT + 20}" cy="{y - 4}" r="4" fill="{look.colours[name]}"/>'
        yield text(LEFT + 32, y, name)
    y = TOP + 24 + 20 * len(names)
    yield f'<path d="M{LEFT + 12} {y - 4}h16" stroke="#444" stroke-dasharray="5 4" stroke-width="0.7"/>'
    yield text(LEFT + 32, y, f"{100 * look.off:.0f} % off")


def dots(axis, colour, pairs):
    """One dot a place: steps 2 and 3 of most runs are the same."""
    places = dict.fromkeys((f"{axis.x(measured):.1f}", f"{axis.y(predicted):.1f}") for measured, predicted in pairs)
    yield f'<g fill="{colour}" fill-opacity="0.55">'
    for x, y in places:
        yield f'<circle cx="{x}" cy="{y}" r="3"/>'
    yield "</g>"


def scatter(series, look=MEMORY):
    """series: name to (measured, predicted) pairs. Pairs without a prediction are left out."""
    drawn = {name: [pair for pair in pairs if min(pair) > 0] for name, pairs in series.items()}
    values = [value for pairs in drawn.values() for pair in pairs for value in pair]
    axis = Axis(values or [look.unit], look.unit)
    width, height = LEFT + SIZE + RIGHT, TOP + SIZE + BOTTOM
    lines = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
             f'viewBox="0 0 {width} {height}" font-family="sans-serif" font-size="13" fill="#222">',
             f"<title>{look.title}</title>",
             f'<rect width="{width}" height="{height}" fill="#fff"/>', *grid(axis, look.off), *titles(look)]
    for name, pairs in drawn.items():
        lines += dots(axis, look.colours[name], pairs)
    return "\n".join([*lines, *legend(look, drawn), "</svg>", ""])
