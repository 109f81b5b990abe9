"""`headway inspect MODEL`: what a model is and whether it fits this machine, from headers only."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Mapping
from typing import Any

import click
from rich.console import Console
from rich.markup import escape

from headway.artifacts.card import ModelCard
from headway.artifacts.context_length import text_config
from headway.artifacts.inspect import inspect
from headway.artifacts.progress import DownloadBars
from headway.capacity.byte_text import byte_text
from headway.capacity.fit import AUTO, fit
from headway.capacity.kv_budget import kv_budget
from headway.capacity.kv_geometry import KvGeometry, kv_geometry
from headway.capacity.weight_bytes import loaded_weight_bytes
from headway.errors import CapacityError, HeadwayError
from headway.host.memory_budget import MemoryBudget, memory_budget

RUN_DTYPE_BYTES = 2  # bf16, for weights and for keys and values
BLOCK_SIZE = 16
_CONFIG_ROWS = ("num_hidden_layers", "hidden_size", "intermediate_size", "num_attention_heads", "num_key_value_heads", "head_dim",
                "vocab_size", "sliding_window", "rope_theta", "tie_word_embeddings")  # fmt: skip
_RUNS = {"native": "natively", "fallback": "through transformers (the fallback, slower)", "refused": "no"}


@click.command("inspect")
@click.argument("model")
@click.option("--revision", help="Branch, tag or commit of a hub model.")
@click.option(
    "--download-dir",
    "cache_dir",
    type=click.Path(file_okay=False),
    help="Folder for downloads instead of the usual caches.",
)
@click.option(
    "--accept-licence", "accept_licence", multiple=True, metavar="WORD", help="Accept a licence that must be accepted."
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def inspect_command(
    model: str, revision: str | None, cache_dir: str | None, accept_licence: tuple[str, ...], as_json: bool
) -> None:
    """Show what MODEL is: a folder, a .gguf file, owner/name[@revision] or a short name.

    Reads headers only; nothing is loaded and no code of the model is run. Exits with 1 when the files cannot be used; `runs`
    says whether their architecture can be run.
    """
    try:
        with DownloadBars() as bars:
            card = inspect(model, revision=revision, cache_dir=cache_dir, accept_licence=accept_licence, progress=bars)
        fields = card_fields(card, memory_budget())
    except HeadwayError as error:
        if as_json:
            click.echo(json.dumps({"error": {"message": error.message, "reason": error.reason, "param": error.param}}))
        click.echo(printable(f"headway inspect: {error.message} [{error.reason}]"), err=True)
        sys.exit(1)
    if as_json:
        click.echo(printable(json.dumps(fields, ensure_ascii=False, indent=2)))
    else:
        _print_card(Console(), card, fields)


def printable(text: str) -> str:
    """Lone surrogates (of file names and JSON files that are not UTF-8) as escapes, which JSON knows as well."""
    return text.encode("utf-8", "backslashreplace").decode()


def card_fields(card: ModelCard, memory: MemoryBudget) -> dict[str, Any]:
    """The card without its tensor list, and what this machine makes of it, as JSON-ready values."""
    from headway.models.verdict import verdict  # imports torch, which takes a second

    runs = verdict(card)
    shape = runs.kv_shape
    # Who runs it knows what is kept: in latent attention, say, the configuration's head_dim is not the width of keys.
    kept = None if shape is None else KvGeometry(shape.num_layers, shape.num_kv_heads, shape.head_dim)
    return {
        "reference": card.reference,
        "path": str(card.path),
        "revision": card.revision,
        "format": card.format,
        "architecture": card.architecture,
        "model_type": card.model_type,
        "parameters": card.parameters,
        "weight_bytes": card.weight_bytes,
        "dtype_bytes": dict(card.dtype_bytes),
        "quantization": None if card.quantization is None else _plain(card.quantization),
        "tensors": len(card.tensors),
        "files": [path.name for path in card.files],
        "missing_files": list(card.missing_files),
        "tokenizer": card.tokenizer,
        "chat_template": card.chat_template,
        "licence": card.licence,
        "context_length": card.context_length,
        "config": _plain(card.config),
        "generation_config": _plain(card.generation_config),
        "runs": {name: value for name in ("by", "why", "reason", "images") if (value := getattr(runs, name)) is not None},
        "fits": _fits(card, memory, kept),
        "problems": list(card.problems),
    }


def _plain(value: Any) -> Any:
    """Mappings as dicts, numbers that JSON does not have (NaN, infinities) as null."""
    if isinstance(value, Mapping):
        return {str(key): _plain(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _fits(card: ModelCard, memory: MemoryBudget, kept: KvGeometry | None) -> dict[str, Any]:
    """Arithmetic for the default flags: bf16 (and integers where they stay integers), block 16, default KV budget. `verdict` is a sentence. Without `kept`, what
    the configuration says."""
    from headway.models.loaded_shape import loaded_integers  # imports torch, which takes a second

    weights = loaded_weight_bytes(card, RUN_DTYPE_BYTES, loaded_integers(card, RUN_DTYPE_BYTES))
    known: dict[str, Any] = {
        "memory_limit": memory.limit,
        "memory_available": memory.available,
        "weight_bytes_loaded": weights,
    }
    try:
        geometry = kept or kv_geometry(card.config)
        known["kv_bytes_per_token"] = geometry.bytes_per_token(RUN_DTYPE_BYTES)
        if weights > memory.available:
            return known | {
                "fits": False,
                "verdict": f"no: the weights need {byte_text(weights)} in bf16, {byte_text(memory.available)} are available",
            }
        budget = kv_budget(memory, resident_bytes=0, weight_bytes=weights)
        report = fit(
            geometry,
            budget,
            weight_bytes=weights,
            kv_dtype_bytes=RUN_DTYPE_BYTES,
            block_size=BLOCK_SIZE,
            max_model_len=AUTO,
            context_length=card.context_length,
        )
    except CapacityError as error:
        return known | {"fits": False, "verdict": f"no: {error.message}"}
    whole = report.max_model_len == card.context_length
    verdict = "yes" if whole else f"with --max-model-len {report.max_model_len}"
    return known | {
        "fits": True,
        "verdict": verdict,
        "max_model_len": report.max_model_len,
        "kv_cache_bytes": report.kv_bytes,
        "max_concurrency": round(report.max_concurrency, 2),
        "equation": report.equation(),
    }


def _print_card(console: Console, card: ModelCard, fields: dict[str, Any]) -> None:
    for label, value in _rows(card, fields):
        console.print(f"[bold]{label:<14}[/] {escape(printable(value))}", soft_wrap=True, highlight=False)
    for problem in (*card.problems, *(f"{name} is a link to nothing" for name in card.missing_files)):
        console.print(f"[yellow]{'note':<14}[/] {escape(printable(problem))}", soft_wrap=True, highlight=False)


def _rows(card: ModelCard, fields: dict[str, Any]) -> list[tuple[str, str]]:
    dtypes = ", ".join(f"{name} {byte_text(nbytes)}" for name, nbytes in card.dtype_bytes.items())
    config = text_config(card.config)
    fits = fields["fits"]
    rows = [
        ("model", card.reference + (f" ({card.revision})" if card.revision else "")),
        ("path", str(card.path)),
        ("architecture", f"{card.architecture or 'unknown'} ({card.model_type or 'unknown type'}, {card.format})"),
        ("runs", _RUNS[fields["runs"]["by"]] + (f": {fields['runs']['why']}" if "why" in fields["runs"] else "")),
        *([("images", fields["runs"]["images"])] if "images" in fields["runs"] else []),
        ("parameters", f"{card.parameters / 1e6:,.1f} M"),
        (
            "weights",
            f"{byte_text(card.weight_bytes)} in {len(card.tensors)} tensors, {len(card.files)} file(s): {dtypes}",
        ),
        ("quantization", "none" if card.quantization is None else str(card.quantization["quant_method"])),
        ("config", ", ".join(f"{name} {config[name]}" for name in _CONFIG_ROWS if config.get(name) is not None)),
        ("context", f"{card.context_length} tokens" if card.context_length else "not stated"),
        ("tokenizer", card.tokenizer or "none"),
        ("chat template", "yes" if card.chat_template else "no"),
        ("licence", card.licence or "not stated"),
    ]
    if "kv_bytes_per_token" in fits:
        rows.append(("KV cache", f"{fits['kv_bytes_per_token']} bytes per token in bf16"))
    rows.append(
        ("this machine", f"{byte_text(fits['memory_available'])} available of {byte_text(fits['memory_limit'])}")
    )
    rows.append(("fits", fits["verdict"]))
    if "equation" in fits:
        rows.append(("", fits["equation"]))
    return rows
