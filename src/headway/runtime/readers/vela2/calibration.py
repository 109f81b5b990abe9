"""calibration.json of a Vela 2.0 package: temperatures, thresholds, and the rules for personal data."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import exp, isfinite, log
from pathlib import Path
from typing import Any, Final

import numpy as np

from headway.artifacts.bounded_json import read_json_object
from headway.runtime.readers.unpublished import not_of_the_format

CALIBRATION: Final = "calibration.json"
ROUTER: Final = "router"
BROAD: Final = "broad"
_UNSUPPORTED: Final = "unsupported"
# Names for one label that mean what the model was trained to call `unsupported`.
_ALIASES: Final = frozenset((
    "unsupported", "unsupportedclaim", "unsupportedspan", "notsupported", "hallucinated", "hallucination", "hallucinatedspan", "fabricated",
    "fabrication",
))  # fmt: skip
_TRAINED_KEYS: Final = ("pii", "halu", "toxic")


@dataclass(frozen=True, slots=True)
class Calibration:
    """Checked by `read_calibration`; `raw` is the file."""

    raw: Mapping[str, Any]

    def temperature(self, kind: str) -> float:
        """choice, score, set or span; 1 where the file has none."""
        return float(self.raw["temperature"].get(kind, 1.0))

    def span_temperature(self, head: str) -> float:
        return float(self.raw["broad_head"]["temperature"]) if head == BROAD else self.temperature("span")

    def schema(self, name: str) -> Mapping[str, Any] | None:
        """A trained question: pii, halu or relevance."""
        found = self.raw.get(f"{name}_schema")
        return found if isinstance(found, dict) else None

    def level_names(self, preset: str | None) -> list[str] | None:
        """Names of the levels of a preset score."""
        schema = self.schema(preset) if preset == "relevance" else None
        return None if schema is None else list(schema["levels"])

    def set_threshold(self, key: str) -> float:
        thresholds = self.raw["thresholds"]
        return float(thresholds.get(f"set:{key}", thresholds.get("set:*", 0.5)))

    def is_personal(self, key: str, labels: Sequence[str]) -> bool:
        """The question for personal data, or one about some of its kinds."""
        kinds = self.raw.get("pii_types") or ()
        return key == "pii" or (bool(labels) and set(labels) <= set(kinds))

    def span_threshold(self, key: str, labels: Sequence[str], tokens: int, head: str) -> float:
        """`tokens`: of the whole part that is searched. For personal data it falls as the part grows."""
        if head == BROAD:
            return float(self.raw["broad_head"]["threshold"])
        if self.is_personal(key, labels) and (found := self._by_length(tokens)) is not None:
            return found
        thresholds = self.raw["thresholds"]
        return float(thresholds.get(f"span:{key}", thresholds.get("span:*", 0.5)))

    def _by_length(self, tokens: int) -> float | None:
        """Between the anchors linear in the logarithms of both; else by buckets."""
        rule = self.raw.get("pii_length_rule")
        if isinstance(rule, dict):
            anchors = rule["anchors"]
            lengths = [log(anchor["n_tokens"]) for anchor in anchors]
            return exp(float(np.interp(log(max(tokens, 1)), lengths, [log(anchor["threshold"]) for anchor in anchors])))
        fitting = (bucket for bucket in self.raw.get("pii_buckets") or () if tokens <= bucket["max_tokens"])
        bucket = next(fitting, None)
        return None if bucket is None else float(bucket["threshold"])

    @property
    def sparse_gate(self) -> tuple[int, float, float] | None:
        """(K, threshold, probe): a part with at most K spans at the probe threshold is read at least at this threshold."""
        gate = self.raw.get("pii_sparse_gate")
        if not isinstance(gate, dict) or gate.get("K", -1) < 0:
            return None
        return int(gate["K"]), float(gate["t_sparse"]), float(gate.get("probe_threshold", 0.5))

    @property
    def noul(self) -> tuple[float, float] | None:
        """(T, b) for `sigmoid(logit(p) / T + b)`; None when the package has none."""
        block = self.raw.get("noul_calibration")
        return (float(block["T"]), float(block["b"])) if isinstance(block, dict) else None

    @property
    def noul_by_default(self) -> bool:
        block = self.raw.get("noul_calibration")
        return isinstance(block, dict) and bool(block.get("default", False))

    def span_head(self, asked: str | None, key: str, labels: Sequence[str], *, broad_loaded: bool) -> str:
        """Which of two span heads reads a question: the one it names, the router head for what that was trained on, else
        the broad head."""
        if not broad_loaded or not self.raw.get("broad_head"):
            return ROUTER
        if asked is not None:
            return asked
        trained = [set(each) for each in self.raw["broad_head"].get("router_label_sets") or ()] or [
            set(self.raw.get("pii_types") or ()), set((self.schema("halu") or {}).get("labels") or ()),
        ]  # fmt: skip
        known = key in _TRAINED_KEYS or set(labels) in trained or set(labels) <= set(self.raw.get("pii_types") or ()) or is_alias(labels)
        return ROUTER if known else BROAD

    def trained_label(self) -> tuple[str, str]:
        """The label that stands for all aliases, and its description."""
        labels = (self.schema("halu") or {}).get("labels") or {}
        return _UNSUPPORTED, labels.get(_UNSUPPORTED, "a claim not supported by the context")


def is_alias(labels: Sequence[str]) -> bool:
    """One label, by another name for what no source supports."""
    return len(labels) == 1 and re.sub(r"[\s_-]+", "", labels[0]).lower() in _ALIASES


def read_calibration(folder: Path) -> Calibration:
    """Raises PackageError (`invalid_package`, or those of the JSON reader)."""
    raw = read_json_object(folder / CALIBRATION)
    temperatures = raw.get("temperature")
    if not isinstance(temperatures, dict) or not all(_is_positive(value) for value in temperatures.values()):
        raise not_of_the_format(CALIBRATION, "temperature, positive numbers by type", temperatures)
    if not isinstance(raw.get("thresholds"), dict) or not all(_is_share(value) for value in raw["thresholds"].values()):
        raise not_of_the_format(CALIBRATION, "thresholds, numbers from 0 to 1", raw.get("thresholds"))
    for name, inner in (("pii", "labels"), ("halu", "labels"), ("relevance", "levels")):
        schema = raw.get(f"{name}_schema")
        if schema is not None and not (isinstance(schema, dict) and isinstance(schema.get("text"), str) and isinstance(schema.get(inner), dict)):
            raise not_of_the_format(CALIBRATION, f"{name}_schema with text and {inner}", schema)
    rule = raw.get("pii_length_rule")
    if rule is not None and not _are_anchors(rule):
        raise not_of_the_format(CALIBRATION, "pii_length_rule.anchors, pairs of n_tokens and threshold with rising n_tokens", rule)
    broad = raw.get("broad_head")
    if broad and not (isinstance(broad, dict) and _is_positive(broad.get("temperature")) and _is_share(broad.get("threshold"))):
        raise not_of_the_format(CALIBRATION, "broad_head with temperature and threshold", broad)
    noul = raw.get("noul_calibration")
    if noul is not None and not (isinstance(noul, dict) and _is_positive(noul.get("T")) and type(noul.get("b")) in (int, float)):
        raise not_of_the_format(CALIBRATION, "noul_calibration with T and b", noul)
    gate = raw.get("pii_sparse_gate")
    if gate is not None and not (isinstance(gate, dict) and (gate.get("K", -1) < 0 or _is_share(gate.get("t_sparse")))):
        raise not_of_the_format(CALIBRATION, "pii_sparse_gate with K and t_sparse", gate)
    return Calibration(raw)


def _are_anchors(rule: Any) -> bool:
    anchors = rule.get("anchors") if isinstance(rule, dict) else None
    if not isinstance(anchors, list) or not anchors or not all(isinstance(anchor, dict) for anchor in anchors):
        return False
    lengths = [anchor.get("n_tokens") for anchor in anchors]
    return all(_is_positive(value) for value in lengths) and lengths == sorted(set(lengths)) and all(
        _is_share(anchor.get("threshold")) and anchor["threshold"] > 0 for anchor in anchors
    )


def _is_positive(value: Any) -> bool:
    return type(value) in (int, float) and isfinite(value) and value > 0


def _is_share(value: Any) -> bool:
    return type(value) in (int, float) and 0 <= value <= 1
