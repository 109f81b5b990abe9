"""The record format of PyTorch's benchmark dashboard, written beside --output-json when it is asked for."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

SWITCH = "SAVE_TO_PYTORCH_BENCHMARK_FORMAT"  # vLLM's environment variable


def write_json(path: str, record: Mapping[str, Any], metrics: Mapping[str, Sequence[float]]) -> None:
    """Write `record` to `path`; with the variable set, `metrics` to the sibling `.pytorch.json` too."""
    target = Path(path)
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(json.dumps(record, indent=4), encoding="utf-8")
    if os.environ.get(SWITCH):
        known = set(metrics)
        extra = {key: value for key, value in record.items() if key not in known and key != "model_id"}
        target.with_suffix(".pytorch.json").write_text(json.dumps(records(str(record["model_id"]), metrics, extra)), encoding="utf-8")


def records(model: str, metrics: Mapping[str, Sequence[float]], extra: Mapping[str, Any]) -> list[dict[str, Any]]:
    """One record per metric."""
    return [
        {
            "benchmark": {"name": "headway benchmark", "extra_info": {}},
            "model": {"name": model},
            "metric": {"name": name, "benchmark_values": list(values), "extra_info": dict(extra)},
        }
        for name, values in metrics.items()
    ]
