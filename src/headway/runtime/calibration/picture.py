"""Reliability diagrams as a PNG: accuracy over confidence, before and after, one row for each question type."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from headway.errors import ConfigError
from headway.runtime.calibration.report import FitReport, Quality


def check_matplotlib() -> None:
    """Raises ConfigError (`missing_extra`) where matplotlib is not installed: before minutes of work, not after."""
    try:
        import matplotlib  # noqa: F401
    except ImportError as error:
        raise ConfigError(
            "--png needs matplotlib, which is not installed", reason="missing_extra", param="png", fix="pip install 'headway[calibrate]'"
        ) from error


def draw_reliability(report: FitReport, path: Path) -> None:
    """Raises ConfigError (`missing_extra`), OSError."""
    check_matplotlib()
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    shown = [(each.kind, each.before, each.after) for each in report.types if each.before is not None and each.after is not None]
    figure = Figure(figsize=(8, 3.6 * max(len(shown), 1)), layout="constrained")
    FigureCanvasAgg(figure)
    for line, (kind, before, after) in enumerate(shown):
        for column, (when, quality) in enumerate((("before", before), ("after", after))):
            axes = figure.add_subplot(len(shown), 2, 2 * line + column + 1)
            _draw(axes, quality)
            axes.set_title(f"{kind}, {when}: ECE {quality.ece:.3f}, accuracy {quality.accuracy:.3f}", fontsize=9)
    figure.savefig(path, dpi=120, format="png")


def _draw(axes: Any, quality: Quality) -> None:
    bins = quality.bins
    axes.bar([each.low for each in bins], [each.accuracy for each in bins], width=[each.high - each.low for each in bins], align="edge",
             edgecolor="black", color="#8fb3d9", label="accuracy")  # fmt: skip
    axes.plot([0, 1], [0, 1], color="gray", linestyle="--", linewidth=1)
    axes.plot([each.confidence for each in bins], [each.accuracy for each in bins], "o", color="black", markersize=3)
    for each in bins:
        axes.annotate(str(each.count), ((each.low + each.high) / 2, 0.02), ha="center", fontsize=6)
    axes.set_xlim(0, 1)
    axes.set_ylim(0, 1)
    axes.set_xlabel("probability of the answer", fontsize=8)
    axes.set_ylabel("share that is right", fontsize=8)
