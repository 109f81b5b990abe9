"""The answers of `headway plan` on one screen: a bar for the memory budget, what it means, and the alternatives."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from rich.cells import cell_len
from rich.console import Console
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from headway.capacity.byte_text import byte_text
from headway.cli.plan_words import Language, said

_PARTS: Final = (("weights", "weights_bytes", "blue"), ("cache", "kv_cache_bytes", "green"), ("activations", "activation_bytes", "yellow"),
                 ("process", "process_bytes", "magenta"))  # fmt: skip
_LABEL: Final = 12
_SHOWN_ROWS: Final = 8


def print_plan(console: Console, answer: Mapping[str, Any], language: Language) -> None:
    """A forward plan."""
    _verdict(console, answer)
    _line(console, said(language, "model"), _model(answer["model"], language))
    device = answer["device"]
    _line(console, said(language, "device"), f"{device['count']} x {device.get('title', device['name'])}, {byte_text(device['memory_bytes'])}")
    _bar(console, answer["memory"], language)
    memory = answer["memory"]
    if memory["kv_bytes_per_token"]:
        _line(console, said(language, "per_token"), f"{memory['kv_bytes_per_token']} B, {byte_text(memory['kv_bytes_per_sequence'])} / {answer['max_model_len']}")
        if answer["largest_concurrency"]:
            _line(console, said(language, "most"), said(
                language, "most_text", context=f"{answer['largest_context']:,}", sequences=f"{answer['largest_concurrency']:,}", length=f"{answer['max_model_len']:,}",
            ))  # fmt: skip
    if "resident" in answer:
        resident = answer["resident"]
        _line(console, said(language, "resident"), said(language, "resident_text", start=byte_text(resident["ready_bytes"]), full=byte_text(resident["cache_full_bytes"])))
    _ceilings(console, answer, language)
    if answer["command"] is not None:
        _line(console, said(language, "command"), answer["command"], style="bold green")
    for note in answer["notes"]:
        _line(console, said(language, "note"), note, style="yellow")
    if answer["formats"]:
        console.print(_formats(answer["formats"], language))
    if len(answer["tensor_parallel"]) > 1:
        console.print(_splits(answer["tensor_parallel"], language))
        for row in answer["tensor_parallel"]:
            if row["obstacle"] is not None:
                console.print(Text(f"{row['size']}: {row['obstacle']}", style="yellow"), soft_wrap=True)


def print_matches(console: Console, answer: Mapping[str, Any], language: Language) -> None:
    """A reverse answer."""
    _verdict(console, answer)
    rows = answer["models"] if "models" in answer else answer["devices"]
    first = "model" if "models" in answer else "device"
    cells = [
        (
            str(row[first]), str(row["count"]), row["format"], byte_text(row["bytes_per_device"]), f"{row['largest_context']:,}",
            f"{row['largest_concurrency']:,}", f"{row['decode_tokens_per_second']:,.0f} /s",
        )
        for row in rows
    ]  # fmt: skip
    console.print(_table([said(language, key) for key in (first, "cards", "format", "each", "longest", "at_once", "decode")], cells, left=(0, 2)))
    for note in answer.get("notes", ()):
        _line(console, said(language, "note"), note, style="yellow")


def _verdict(console: Console, answer: Mapping[str, Any]) -> None:
    good = answer.get("fits", True)
    console.print(Text(answer["verdict"], style="bold green" if good else "bold red"), soft_wrap=True)


def _line(console: Console, label: str, text: str, style: str = "") -> None:
    padded = label + " " * max(1, _LABEL - cell_len(label))
    console.print(Text.assemble((padded, "bold"), (text, style)), soft_wrap=True, highlight=False)


def _model(model: Mapping[str, Any], language: Language) -> str:
    parts = [str(model["name"])]
    if model["parameters"]:
        active = model["active_parameters"]
        sparse = f" ({active / 1e9:.3g} B / token)" if model["kind"] == "decoder" and active < 0.7 * model["parameters"] else ""
        parts.append(f"{_count(model['parameters'])} {said(language, 'parameters')}{sparse}")
    if model["context_length"]:
        parts.append(f"{said(language, 'of_context')} {model['context_length']:,}")
    if model["quantization"]:
        parts.append(str(model["quantization"]))
    return ", ".join(parts)


def _count(parameters: int) -> str:
    return f"{parameters / 1e9:.3g} B" if parameters >= 1e9 else f"{parameters / 1e6:.4g} M"


def _bar(console: Console, memory: Mapping[str, Any], language: Language) -> None:
    """One cell stands for the same number of bytes everywhere; what exceeds the budget is drawn beyond a mark."""
    total = sum(memory[key] for _, key, _ in _PARTS)
    width = max(20, min(console.width - _LABEL - 2, 80))
    scale = width / max(total, memory["budget_bytes"], 1)
    bar, legend = Text(), Text()
    drawn = 0
    for word, key, colour in _PARTS:
        cells = round(memory[key] * scale) or (1 if memory[key] else 0)
        bar.append("█" * min(cells, width - drawn), style=colour)
        drawn = min(width, drawn + cells)
        legend.append(f"■ {said(language, word)} {byte_text(memory[key])}  ", style=colour)
    free = memory["budget_bytes"] - total
    bar.append("░" * (width - drawn) if free >= 0 else "", style="dim")
    legend.append(f"{said(language, 'free' if free >= 0 else 'over')} {byte_text(abs(free))}", style="dim" if free >= 0 else "bold red")
    label = said(language, "memory")
    padding = " " * max(1, _LABEL - cell_len(label))
    console.print(Text.assemble((label + padding, "bold"), bar), soft_wrap=True)
    console.print(Text.assemble(" " * _LABEL, legend), soft_wrap=True)


def _ceilings(console: Console, answer: Mapping[str, Any], language: Language) -> None:
    found = answer["ceilings"]
    if found is None:
        if answer["model"]["parameters"]:
            _line(console, said(language, "ceilings"), said(language, "unmeasured"), style="dim")
        return
    _line(console, said(language, "ceilings"), said(
        language, "ceiling_text", one=_rate(found["decode_tokens_per_second_alone"]), many=_rate(found["decode_tokens_per_second_all"]),
        sequences=answer["concurrency"], prefill=_rate(found["prefill_tokens_per_second"]),
    ))  # fmt: skip
    _line(console, "", said(
        language, "roofs_text", bandwidth=f"{found['bandwidth_bytes_per_second'] / 1e9:,.4g} GB/s", flops=f"{found['flops_per_second'] / 1e12:,.4g} TFLOP/s",
        origin=said(language, found["origin"]),
    ), style="dim")  # fmt: skip


def _rate(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def _formats(rows: Sequence[Mapping[str, Any]], language: Language) -> Table:
    cells = [
        (
            row["name"], f"{row['bits_per_weight']:.3g}", _decimal(row["nominal_bytes"]), _decimal(row["bytes"]), said(language, "yes" if row["fits"] else "no"),
            f"{row['cost_zh' if language == 'zh' else 'cost']} ({row['source']})",
        )
        for row in [row for row in rows if row["served_here"]][:_SHOWN_ROWS]
    ]  # fmt: skip
    return _table([said(language, key) for key in ("format", "bits", "nominal", "stored", "fits_column", "cost")], cells, left=(0, 5))


def _table(heads: Sequence[str], rows: Sequence[Sequence[str]], left: Sequence[int] = (0,)) -> Table:
    """Columns of their full width, but for a last column of words, which gives way where the screen is narrow."""
    table = Table(box=None, pad_edge=False, padding=(0, 1))
    for place, head in enumerate(heads):
        words = place == len(heads) - 1 and place in left
        width = max((cell_len(row[place]) for row in rows), default=0)
        least = None if words else max(width, *map(cell_len, head.split()))
        table.add_column(head, justify="left" if place in left else "right", no_wrap=words, overflow="ellipsis", min_width=least)
    for row in rows:
        table.add_row(*map(escape, row))
    return table


def _decimal(count: int) -> str:
    """As file sizes of models are quoted: 140000000000 -> "140.0 GB"."""
    return f"{count / 1e9:,.1f} GB" if count >= 1e9 else f"{count / 1e6:,.1f} MB"


def _splits(rows: Sequence[Mapping[str, Any]], language: Language) -> Table:
    cells = [
        (str(row["size"]), byte_text(row["bytes_per_device"]), f"{row['largest_context']:,}", said(language, "yes" if row["fits"] else "no")) for row in rows
    ]
    return _table([said(language, key) for key in ("split", "each", "longest", "fits_column")], cells, left=())
