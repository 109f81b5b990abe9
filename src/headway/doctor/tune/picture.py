"""The trade-off as a picture: every setting by what it makes and how long its requests wait. SVG in a page of its own, PNG
where matplotlib is installed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from statistics import fmean
from typing import Any, Final

from headway.doctor.tune.setting import Setting, flag_line
from headway.errors import ConfigError

_WIDTH, _HEIGHT, _MARGIN = 760, 460, 64
_COLOURS: Final = {"start": "#c0392b", "best": "#1e8449", "tried": "#7f8c8d"}


@dataclass(frozen=True, slots=True)
class Point:
    """Means over the runs of a setting: `x` tokens/s, `y` 95th percentile of the time to first token in ms."""

    label: str
    role: str
    x: float
    y: float
    runs: int


def points(details: Sequence[tuple[Setting, dict[str, Any]]], start: Setting, best: Setting) -> list[Point]:
    """Settings that ran, in the order of their first run; start and best stand for themselves."""
    by_setting: dict[Setting, list[dict[str, Any]]] = {}
    for setting, run in details:
        if "tokens_per_s" in run:
            by_setting.setdefault(setting, []).append(run)
    return [
        Point(
            flag_line(setting) or "defaults",
            "best" if setting == best else "start" if setting == start else "tried",
            fmean(run["tokens_per_s"] for run in runs),
            fmean(run["ttft_p95_ms"] for run in runs),
            len(runs),
        )
        for setting, runs in by_setting.items()
    ]


def write_page(path: Path, title: str, shown: Sequence[Point]) -> None:
    """A page without anything from elsewhere: the picture, and the same as a table."""
    rows = "".join(
        f"<tr class={point.role}><td><code>{escape(point.label)}</code><td>{point.role}<td>{point.x:.1f}<td>{point.y:.1f}<td>{point.runs}</tr>" for point in shown
    )
    path.write_text(
        f"<!doctype html><meta charset=utf-8><title>{escape(title)}</title>"
        "<style>body{font:14px system-ui;margin:2em;max-width:60em}td,th{padding:.2em .8em;text-align:left}.best{font-weight:bold;color:#1e8449}"
        f".start{{color:#c0392b}}</style><h1>{escape(title)}</h1>{_svg(shown)}"
        f"<table><tr><th>flags<th><th>tokens/s<th>TTFT p95 (ms)<th>runs</tr>{rows}</table>",
        "utf-8",
    )


def _svg(shown: Sequence[Point]) -> str:
    right, top = max((point.x for point in shown), default=1.0) * 1.08 or 1.0, max((point.y for point in shown), default=1.0) * 1.08 or 1.0

    def place(x: float, y: float) -> tuple[float, float]:
        return _MARGIN + x / right * (_WIDTH - 2 * _MARGIN), _HEIGHT - _MARGIN - y / top * (_HEIGHT - 2 * _MARGIN)

    parts = [f'<svg viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img" aria-label="trade-off" font-family="system-ui" font-size="12">']
    for index in range(5):
        x, y = place(right * index / 4, 0)
        parts.append(f'<text x="{x:.0f}" y="{y + 18:.0f}" text-anchor="middle">{right * index / 4:.0f}</text>')
        x, y = place(0, top * index / 4)
        parts.append(f'<text x="{x - 8:.0f}" y="{y + 4:.0f}" text-anchor="end">{top * index / 4:.0f}</text>')
        parts.append(f'<line x1="{_MARGIN}" x2="{_WIDTH - _MARGIN}" y1="{y:.0f}" y2="{y:.0f}" stroke="#ddd"/>')
    parts.append(f'<text x="{_WIDTH / 2}" y="{_HEIGHT - 12}" text-anchor="middle">tokens/s made</text>')
    parts.append(f'<text x="16" y="{_HEIGHT / 2}" text-anchor="middle" transform="rotate(-90 16 {_HEIGHT / 2})">TTFT p95 (ms)</text>')
    for point in shown:
        x, y = place(point.x, point.y)
        radius = 5 if point.role == "tried" else 8
        parts.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{radius}" fill="{_COLOURS[point.role]}"><title>{escape(point.label)}</title></circle>')
        if point.role != "tried":
            parts.append(f'<text x="{x + 11:.1f}" y="{y + 4:.1f}">{point.role}</text>')
    return "".join(parts) + "</svg>"


def write_png(path: Path, title: str, shown: Sequence[Point]) -> None:
    """Raises ConfigError (`matplotlib_missing`)."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise ConfigError(
            "a PNG needs matplotlib, which is not installed", reason="matplotlib_missing", fix="pip install 'headway[calibrate]'; the page is written without it."
        ) from None
    figure = Figure(figsize=(7.6, 4.6), layout="constrained")
    axes = figure.subplots()
    for role, colour in _COLOURS.items():
        own = [point for point in shown if point.role == role]
        axes.scatter([point.x for point in own], [point.y for point in own], c=colour, s=30 if role == "tried" else 80, label=role)
    axes.set(title=title, xlabel="tokens/s made", ylabel="TTFT p95 (ms)", xlim=(0, None), ylim=(0, None))
    axes.legend()
    figure.savefig(path, dpi=120)
