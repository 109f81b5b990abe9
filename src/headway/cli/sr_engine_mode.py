"""Engine mode without a configuration: each model has one of its own."""

from __future__ import annotations

import json
import re
from pathlib import Path

from headway.cli.sr_client import PUBLIC_PORT
from headway.router.deployments.specification import DEFAULT_DECISION_MODEL

_CONFIG = """# Written by `vllm-sr serve {model} --engine`. It is kept: change it as you like.
version: v0.3
listeners:
  - name: systemone
    address: 127.0.0.1
    port: {port}
    systemone:
      models: [{name}]
global:
  router:
    enabled: false
  model_catalog:
    deployments:
      {deployment}: {{provider: model_runtime, artifact: {artifact}, public_name: {name}}}
"""
_DEFAULT = "vllm-sr/Vela-2.0-0.3B"


def engine_config(model: str | None) -> Path:
    """`~/.local/state/vllm-sr/engine/<model>/config.yaml`, written when it is not there yet."""
    model = model or _DEFAULT
    folder = Path.home() / ".local" / "state" / "vllm-sr" / "engine" / re.sub(r"[^A-Za-z0-9._-]+", "_", model).strip("_")
    config = folder / "config.yaml"
    if not config.exists():
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        name = Path(model).name if Path(model).is_absolute() else model
        values = {"deployment": DEFAULT_DECISION_MODEL, "artifact": json.dumps(model), "name": json.dumps(name), "port": PUBLIC_PORT}
        config.write_text(_CONFIG.format(model=model, **values), encoding="utf-8")
    return config
