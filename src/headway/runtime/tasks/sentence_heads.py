"""Classifiers on an embedder: several heads that read the pooled state of one encoder, beside the vectors that it serves.

`sentence_heads.json` names them, `sentence_heads.safetensors` has their weights in float32. Layout (version 1, our own):

    {"version": 1, "heads": [{"name": "domain", "labels": ["law", "other"], "activation": "tanh"}]}
    <name>.dense.{weight,bias} [hidden, hidden], [hidden]    only with an activation
    <name>.out.{weight,bias}   [labels, hidden], [labels]

A head computes out(activation(dense(pooled))), pooled as for vectors but not normalized, and softmax over its labels.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import torch

from headway.errors import PackageError
from headway.runtime.model_facts import HeadFacts
from headway.runtime.readers.package_tensors import PackageTensors
from headway.runtime.tasks.head import ACTIVATIONS, Head
from headway.runtime.tasks.long_input import DEFAULT_SCAN, HeadLimits, default_window
from headway.runtime.tasks.readouts import Pooling, Readout, logits_readout
from headway.runtime.tasks.sequence_head import SequenceHead
from headway.runtime.tasks.sequence_text import SequenceText

LAYOUT: Final = "sentence_heads.json"
WEIGHTS: Final = "sentence_heads.safetensors"
_MOST: Final = 64


@dataclass(frozen=True, slots=True)
class SentenceHead:
    name: str
    labels: tuple[str, ...]
    activation: str | None

    @property
    def readout(self) -> str:
        return f"classify {self.name}"

    def shapes(self, hidden_size: int) -> dict[str, tuple[int, ...]]:
        """Of its tensors, by name."""
        count = len(self.labels)
        wanted: dict[str, tuple[int, ...]] = {f"{self.name}.out.weight": (count, hidden_size), f"{self.name}.out.bias": (count,)}
        if self.activation is not None:
            wanted |= {f"{self.name}.dense.weight": (hidden_size, hidden_size), f"{self.name}.dense.bias": (hidden_size,)}
        return wanted


def read_sentence_heads(layout: Mapping[str, Any], tensors: PackageTensors, hidden_size: int) -> tuple[SentenceHead, ...]:
    """In the order of the layout; the first is the primary one. Raises PackageError (`sentence_heads`, and those of `PackageTensors.check`)."""
    if layout.get("version") != 1:
        raise _refused(f"version must be 1, found {layout.get('version')!r:.40}")
    stated = layout.get("heads")
    if not isinstance(stated, list) or not 1 <= len(stated) <= _MOST:
        raise _refused(f"heads must list 1 to {_MOST} heads")
    heads = tuple(_head(entry) for entry in stated)
    if len({head.name for head in heads}) != len(heads):
        raise _refused("two heads have one name")
    tensors.check({name: shape for head in heads for name, shape in head.shapes(hidden_size).items()})
    return heads


def _head(entry: Any) -> SentenceHead:
    if not isinstance(entry, dict) or entry.keys() - {"name", "labels", "activation"}:
        raise _refused("each head has name, labels and activation, nothing else")
    name, labels, activation = entry.get("name"), entry.get("labels"), entry.get("activation")
    if not isinstance(name, str) or not name or "." in name:
        raise _refused(f"name must be a text without dots, found {name!r:.60}")
    if not isinstance(labels, list) or len(labels) < 2 or not all(isinstance(label, str) for label in labels) or len(set(labels)) != len(labels):
        raise _refused(f"labels of {name:.60} must be two or more different texts")
    if activation is not None and activation not in ACTIVATIONS:
        raise _refused(f"activation of {name:.60} must be one of {', '.join(ACTIVATIONS)}, found {activation!r:.40}")
    return SentenceHead(name, tuple(labels), activation)


def head_readouts(heads: Sequence[SentenceHead], tensors: PackageTensors, pooling: Pooling) -> dict[str, Readout]:
    """By the names that rows give; brings the weights."""
    return {head.readout: logits_readout(_loaded(head, tensors), pooling) for head in heads}


def _loaded(head: SentenceHead, tensors: PackageTensors) -> Head:
    part = tensors.read(torch.float32, f"{head.name}.")
    dense = (part["dense.weight"], part["dense.bias"]) if head.activation is not None else None
    return Head((part["out.weight"], part["out.bias"]), dense, head.activation)


def classify_heads(heads: Sequence[SentenceHead], text: SequenceText, scan: int = DEFAULT_SCAN) -> list[SequenceHead]:
    """How they read texts: as sequence classifiers do."""
    limits = HeadLimits(text.limit, text.limit, max(scan, text.limit), text.single.size)
    window = default_window(text.limit, text.single.size)
    return [
        SequenceHead(HeadFacts(head.name, "sequence", head.labels, window=window, reduction="max"), limits, text, readout=head.readout) for head in heads
    ]


def _refused(message: str) -> PackageError:
    return PackageError(f"{LAYOUT}: {message}", reason="sentence_heads", param=LAYOUT, fix="Correct the file, or remove it to serve vectors only.")
