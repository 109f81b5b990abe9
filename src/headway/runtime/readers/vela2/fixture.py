"""Tiny Vela 2.0 packages with random weights."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

import torch
from safetensors.torch import save_file

from headway.artifacts.resumable_download import file_sha256
from headway.runtime.readers.candidate_head import head_shapes
from headway.runtime.readers.fixtures.tiny_backbone import (
    random_decoder,
    random_encoder,
    random_tensor,
    tiny_decoder_config,
    tiny_encoder_config,
)
from headway.runtime.readers.fixtures.tiny_tokenizer import write_tiny_tokenizer
from headway.runtime.readers.vela2.calibration import CALIBRATION
from headway.runtime.readers.vela2.marker_readout import readout_shapes
from headway.runtime.readers.vela2.package import BROAD_HEAD, DECODER, ENCODER, MANIFEST, SUMS
from headway.runtime.readers.vela2.sequence import MARKERS
from headway.runtime.readers.vela2.span_head import BROAD_PREFIX, ROUTER_PREFIX, span_shapes
from headway.runtime.readers.weight_files import INDEX, SINGLE

_PROJECTED: Final = 16
_SLOTS: Final = 8
_KINDS: Final = ("PERSON", "EMAIL_ADDRESS", "PHONE_NUMBER", "US_SSN", "STREET_ADDRESS")
_CALIBRATION: Final[dict[str, Any]] = {
    "temperature": {"choice": 1.3, "score": 1.1, "set": 1.05, "span": 0.8},
    "thresholds": {"set:*": 0.3, "span:halu": 0.55, "span:*": 0.5},
    "pii_types": list(_KINDS),
    "pii_length_rule": {"anchors": [{"n_tokens": 21, "threshold": 0.75}, {"n_tokens": 126, "threshold": 0.05}, {"n_tokens": 1022, "threshold": 0.006}]},
    "pii_sparse_gate": {"K": 3, "t_sparse": 0.1, "probe_threshold": 0.5},
    "pii_schema": {"text": "Which spans are personal information?", "labels": {name: name.lower().replace("_", " ") for name in _KINDS}},
    "halu_schema": {"text": "Which spans of the answer have no source?", "labels": {"unsupported": "a claim not supported by the context"}},
    "relevance_schema": {
        "text": "How relevant is this candidate?",
        "levels": {"not_relevant": "It does not help.", "partially_relevant": "It helps a little.", "highly_relevant": "It answers the query."},
    },
}  # fmt: skip
_BROAD: Final[dict[str, Any]] = {
    "broad_head": {"temperature": 1.2, "threshold": 0.55, "router_label_sets": [list(_KINDS), ["unsupported"]]},
    "noul_calibration": {"T": 2.0, "b": 0.25, "default": False},
}  # fmt: skip


def _write_encoder(folder: Path, seed: int) -> None:
    vocabulary = write_tiny_tokenizer(folder, {"pad_token": "<pad>", "eos_token": "<eos>", "bos_token": "<bos>"}, MARKERS)
    first = vocabulary - len(MARKERS)
    encoder = tiny_encoder_config(vocabulary)
    chance = torch.Generator().manual_seed(seed + 1)
    head = {name: random_tensor(name, shape, chance) for name, shape in readout_shapes(encoder["hidden_size"], _PROJECTED, "both").items()}
    head |= {"log_tau": torch.tensor(-1.0), "log_tau_span": torch.tensor(-1.5)}
    save_file({**{f"encoder.{name}": value for name, value in random_encoder(encoder, seed).items()}, **head}, folder / SINGLE)
    _write(folder / "config.json", {
        "architectures": ["Vela2Model"], "model_type": ENCODER, "format_version": 1, "encoder_config": encoder, "proj_dim": _PROJECTED, "readout": "both",
        "markers": list(MARKERS), "marker_ids": {name: first + place for place, name in enumerate(MARKERS)},
        "pad_token_id": first - 3, "eos_token_id": first - 2, "bos_token_id": first - 1, "max_length": 2048, "window_overlap": 128,
    })  # fmt: skip
    _write(folder / CALIBRATION, _CALIBRATION)


def _write_decoder(folder: Path, seed: int) -> None:
    vocabulary = write_tiny_tokenizer(folder, {"pad_token": "<|endoftext|>", "eos_token": "<|im_end|>"})
    config = tiny_decoder_config("qwen3_5_text", vocabulary)
    hidden = config["hidden_size"]
    backbone = {f"backbone.{name}": value for name, value in random_decoder(config, seed).items()}
    chance = torch.Generator().manual_seed(seed + 1)
    heads = {f"head.{name}": random_tensor(name, shape, chance) for name, shape in head_shapes(hidden, _PROJECTED).items()}
    heads["set_bias"] = torch.tensor(0.3)
    heads |= {ROUTER_PREFIX + name: random_tensor(name, shape, chance) for name, shape in span_shapes(hidden, _PROJECTED, _SLOTS).items()}
    broad = {BROAD_PREFIX + name: random_tensor(name, shape, chance) for name, shape in span_shapes(hidden, _PROJECTED, _SLOTS).items()}
    shards = {"model-00001-of-00002.safetensors": backbone, "model-00002-of-00002.safetensors": heads}
    for name, tensors in shards.items():
        save_file(tensors, folder / name)
    save_file(broad, folder / BROAD_HEAD)
    _write(folder / INDEX, {"metadata": {}, "weight_map": {tensor: name for name, tensors in shards.items() for tensor in tensors}})
    _write(folder / "config.json", {
        "architectures": ["Vela2DecoderModel"], "model_type": DECODER, "format_version": 1, "backbone_config": config, "head_dim": _PROJECTED,
        "span_head": {"d": _PROJECTED, "slots": _SLOTS}, "pad_token_id": 0, "max_length": 4096,
        "span_layout": {"hybrid_rmax": 128, "window": 112, "stride": 96, "window_above": 128},
    })  # fmt: skip
    _write(folder / CALIBRATION, {**_CALIBRATION, **_BROAD})
    digests = {path.name: file_sha256(path) for path in sorted(folder.iterdir())}
    _write(folder / MANIFEST, {"files_sha256": digests})
    digests[MANIFEST] = file_sha256(folder / MANIFEST)
    (folder / SUMS).write_text("".join(f"{digest}  {name}\n" for name, digest in digests.items()))


VARIANTS: Final[Mapping[str, Callable[[Path, int], None]]] = {"encoder": _write_encoder, "decoder": _write_decoder}


def write_package(folder: Path, variant: str, seed: int) -> None:
    """The decoder comes in two shards, with a broad span head and lists of digests."""
    folder.mkdir(parents=True, exist_ok=True)
    VARIANTS[variant](folder, seed)


def _write(path: Path, value: Any) -> None:
    path.write_text(json.dumps(value, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
