"""Vela 2.0 without Headway, from docs/families.md: sequences and blocks by hand, transformers below, numpy for heads.

The words of a text are given by whoever asks: how a text is cut into words is tested by itself.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from tokenizers import Tokenizer

from tests.runtime.readers.decision_oracles import canonical, read, weights_of
from tests.runtime.readers.plain_models import (
    Floats,
    below,
    candidate_logits,
    filled,
    gelu,
    layer_norm,
    numbers,
    states,
    unit,
)

MARKERS = ("[Q]", "[O]", "[ABS]", "[SEP_SCHEMA]", "[SEG_user]", "[SEG_answer]", "[E]", "[SEG_context]")


@dataclass(frozen=True)
class Asked:
    """`kind`: what the model calls the type; nouls are choices."""

    kind: str
    text: str
    options: tuple[tuple[str, str], ...]
    roles: tuple[str, ...]
    abstain: bool = False


def word_places(text: str, words: Sequence[str]) -> list[tuple[int, int]]:
    """Code points of words that are listed in order."""
    places, at = [], 0
    for word in words:
        at = text.index(word, at)
        places.append((at, at + len(word)))
        at += len(word)
    return places


class VelaOracle:
    def __init__(self, folder: Path):
        self.config = read(folder / "config.json")
        self.calibration = read(folder / "calibration.json")
        document = json.loads((folder / "tokenizer.json").read_text())
        document["added_tokens"] = [token for token in document["added_tokens"] if token["content"] not in MARKERS]
        self.tokenizer = Tokenizer.from_str(json.dumps(document))

    def ids(self, text: str) -> list[int]:
        return list(self.tokenizer.encode(text, add_special_tokens=False).ids)

    def first_tokens(self, text: str, words: Sequence[str]) -> list[int]:
        """For each word the first token that overlaps it."""
        offsets = self.tokenizer.encode(text, add_special_tokens=False).offsets
        return [next(i for i, (a, b) in enumerate(offsets) if b > start and a < end) for start, end in word_places(text, words)]


class EncoderOracle(VelaOracle):
    def __init__(self, folder: Path):
        super().__init__(folder)
        tensors = weights_of(folder / "model.safetensors")
        self.model = filled(self.config["encoder_config"], below(tensors, "encoder."))
        self.head = {name: value for name, value in numbers(tensors).items() if not name.startswith("encoder.")}

    def _project(self, name: str, x: Floats) -> Floats:
        t = self.head
        return layer_norm(x, t["norm.weight"], t["norm.bias"]) @ t[f"{name}.weight"].T + t[f"{name}.bias"]

    def row(self, parts: Sequence[tuple[str, list[int]]], asked: Sequence[Asked], words: Sequence[int] = ()) -> tuple[list[Floats], Floats]:
        """Logits of the options of each question that is no span, and [words, labels] of the one that is. `parts`: role and
        tokens; `words`: first tokens within the part that the span reads."""
        mark = self.config["marker_ids"]
        ids = [self.config["bos_token_id"]]
        places: list[tuple[int, list[int], tuple[str, ...]]] = []
        for each in asked:
            if each.kind == "span":
                continue
            query, options = len(ids), []
            ids += [mark["[Q]"], *self.ids(each.text)]
            for name, text in each.options:
                options.append(len(ids))
                ids += [mark["[O]"], *self.ids(f"{name}: {text}" if text else name)]
            if each.abstain:
                options.append(len(ids))
                ids.append(mark["[ABS]"])
            places.append((query, options, each.roles))
        labels = []
        span = next((each for each in asked if each.kind == "span"), None)
        for name, text in span.options if span else ():
            labels.append(len(ids))
            ids += [mark["[E]"], *self.ids(f"{name}: {text}" if text else name)]
        ids.append(mark["[SEP_SCHEMA]"])
        ranges = {}
        for role, tokens in parts:
            start = len(ids)
            ids += [mark[f"[SEG_{role}]"], *tokens]
            ranges[role] = (start, len(ids))
        ids.append(self.config["eos_token_id"])
        hidden = states(self.model, ids)
        found = [self._options(hidden, query, options, ranges[roles[0]][0], ranges[roles[-1]][1]) for query, options, roles in places]
        if span is None:
            return found, np.zeros((0, 0))
        at = [ranges[span.roles[0]][0] + 1 + word for word in words]
        scores = unit(self._project("w_t", hidden[at])) @ unit(self._project("w_e", hidden[labels])).T
        return found, scores / math.exp(self.head["log_tau_span"])

    def _options(self, hidden: Floats, query: int, options: list[int], start: int, end: int) -> Floats:
        t = self.head
        about = unit(self._project("w_p", hidden[start:end].mean(0)))
        asked = unit(self._project("w_o", hidden[options]) + self._project("w_q", hidden[query]))
        grown = np.maximum(hidden[options] @ t["cls_mlp.0.weight"].T + t["cls_mlp.0.bias"], 0)
        return asked @ about / math.exp(t["log_tau"]) + (grown @ t["cls_mlp.3.weight"].T + t["cls_mlp.3.bias"])[:, 0]

    def schema_tokens(self, asked: Sequence[Asked]) -> int:
        """Tokens of the questions, markers included."""
        total = 0
        for each in asked:
            total += sum(1 + len(self.ids(f"{name}: {text}" if text else name)) for name, text in each.options)
            total += 0 if each.kind == "span" else 1 + len(self.ids(each.text)) + each.abstain
        return total


class DecoderOracle(VelaOracle):
    def __init__(self, folder: Path):
        super().__init__(folder)
        tensors = weights_of(*sorted(folder.glob("model-*.safetensors")))
        self.model = filled(self.config["backbone_config"], below(tensors, "backbone."))
        self.head = numbers(below(tensors, "head."))
        self.set_bias = float(tensors["set_bias"])
        self.spans = {"router": numbers(below(tensors, "span2.")), "broad": numbers(below(weights_of(folder / "broad_head.safetensors"), "span_broad."))}

    def _prefix(self, parts: Sequence[tuple[str, list[int]]]) -> list[int]:
        ids = self.ids("Context:\n")
        for role, tokens in parts:
            ids += [*self.ids(f'<segment role="{role}">\n'), *tokens, *self.ids("\n</segment>\n")]
        return ids

    def _listed(self, each: Asked) -> list[list[int]]:
        tag = "label" if each.kind == "span" else "option"
        shown = [*each.options, *([("[ABS]", "None of the shown options applies.")] if each.abstain else [])]
        return [self.ids(f"\n<{tag}>\n" + canonical({"key": name, "description": text}) + f"\n</{tag}>") for name, text in shown]

    def options(self, parts: Sequence[tuple[str, list[int]]], each: Asked) -> Floats:
        ids = [*self._prefix(parts), *self.ids(f"\n\nTask type: {each.kind}\nTarget: {', '.join(each.roles)}\nQuestion:\n{each.text}\nOptions:")]
        ends = []
        for option in self._listed(each):
            ids += option
            ends.append(len(ids) - 1)
        what = "every option" if each.kind == "set" else "the single option best"
        ids += self.ids(f"\n\nSelect {what} supported by the context and instructions.\nDecision:")
        hidden = states(self.model, ids)
        return candidate_logits(self.head, hidden[ends], hidden[-1]) + (self.set_bias if each.kind == "set" else 0.0)

    def words(self, parts: Sequence[tuple[str, list[int]]], each: Asked, words: Sequence[int], head: str) -> Floats:
        """[words, labels]."""
        ids = [*self._prefix(parts), *self.ids(f"\n\nTask type: span\nTarget: {each.roles[0]}\nQuestion:\n{each.text}\nLabels:")]
        ranges = []
        for label in self._listed(each):
            ranges.append((len(ids), len(ids) + len(label)))
            ids += label
        ids += [*self.ids("\n\nText:\n"), *self.ids(f'<segment role="{each.roles[0]}">\n')]
        at = [len(ids) + word for word in words]
        ids += [*dict(parts)[each.roles[0]], *self.ids("\n</segment>\n")]
        ids += self.ids("\n\nMark every span of the target text that carries one of the labels.\nSpans:")
        hidden = states(self.model, ids)
        t = self.spans[head]
        w = layer_norm(hidden[at], t["wn.weight"], t["wn.bias"])
        w = w - w.mean(0)
        means = np.stack([hidden[a:b].mean(0) for a, b in ranges])
        at_labels = layer_norm(means, t["ln.weight"], t["ln.bias"]) + t["slot.weight"][np.minimum(np.arange(len(means)), len(t["slot.weight"]) - 1)]
        if len(means) > 1:
            at_labels = at_labels - at_labels.mean(0)
        near = (w @ t["K.weight"].T) @ (at_labels @ t["Q.weight"].T).T / math.sqrt(len(t["K.weight"]))
        mixed = (w @ t["M.weight"].T + t["M.bias"])[:, None] + (at_labels @ t["N.weight"].T)[None]
        return near + gelu(mixed) @ t["v.weight"][0]
