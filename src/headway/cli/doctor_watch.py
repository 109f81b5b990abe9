"""While a server is looked at: a progress bar, or a live view of its load with a sparkline for each measure."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final

import psutil
from rich.console import Console
from rich.live import Live
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from headway.doctor.collect.gpus import gpus_part
from headway.doctor.facts.metrics import Scrape, read_scrape

_BARS: Final = "▁▂▃▄▅▆▇█"
_SHOWN: Final = 48
# row -> metrics, whether the counter's growth per second is shown
_ROWS: Final = {
    "running": (("num_requests_running",), False),
    "waiting": (("num_requests_waiting",), False),
    "KV cache %": (("kv_cache_usage_perc", "gpu_cache_usage_perc"), False),
    "tokens/s out": (("generation_tokens_total", "generation_tokens"), True),
    "tokens/s in": (("prompt_tokens_total", "prompt_tokens"), True),
    "preemptions/s": (("num_preemptions_total", "num_preemptions"), True),
}

Seen = Callable[[Mapping[str, Any]], None]


@contextmanager
def progress_of_samples(samples: int, *, live: bool, quiet: bool) -> Iterator[Seen]:
    """A function to call with each sample. Draws on standard error; nothing when `quiet`, no bar without a terminal."""
    console = Console(stderr=True)
    if quiet or not (live or console.is_terminal):
        yield lambda sample: None
        return
    if live:
        view = LoadView()
        with Live(view.table(), console=console, refresh_per_second=4) as screen:

            def drawn(sample: Mapping[str, Any]) -> None:
                view.add(sample, psutil.cpu_percent(), gpus_part()["gpus"])
                screen.update(view.table())

            yield drawn
        return
    with Progress(TextColumn("looking"), BarColumn(), TimeRemainingColumn(), console=console, transient=True) as progress:
        task = progress.add_task("", total=samples)
        yield lambda sample: progress.advance(task)


class LoadView:
    """The last values of each measure."""

    def __init__(self) -> None:
        self._series: dict[str, list[float]] = {name: [] for name in (*_ROWS, "CPU % of this machine")}
        self._before: Scrape | None = None

    def add(self, raw: Mapping[str, Any], cpu_percent: float, gpus: Sequence[Mapping[str, Any]] = ()) -> None:
        """`gpus`: as the collectors have them; each gets a row of its own."""
        for card in gpus:
            self._series.setdefault(f"GPU {card['index']} %", []).append(float(card["util_percent"]))
        sample = read_scrape(0, raw)
        for name, (metrics, is_rate) in _ROWS.items():
            value = self._rate(sample, metrics) if is_rate else sample.total(*metrics)
            if value is not None:
                self._series[name].append(value * 100 if name.endswith("%") else value)
        self._series["CPU % of this machine"].append(cpu_percent)
        self._before = sample

    def _rate(self, sample: Scrape, names: tuple[str, ...]) -> float | None:
        if self._before is None or sample.t is None or self._before.t is None or sample.t <= self._before.t:
            return None
        now, before = sample.total(*names), self._before.total(*names)
        if now is None or before is None or now < before:
            return None
        return (now - before) / (sample.t - self._before.t)

    def table(self) -> Table:
        table = Table(box=None, show_header=False)
        for name, values in self._series.items():
            shown = values[-_SHOWN:]
            table.add_row(name, f"{shown[-1]:.1f}" if shown else "-", sparkline(shown))
        return table


def sparkline(values: list[float]) -> str:
    """One character per value, scaled to the largest; a zero is the lowest bar."""
    top = max(values, default=0.0)
    return "".join(_BARS[round(value / top * (len(_BARS) - 1)) if top > 0 else 0] for value in values)
