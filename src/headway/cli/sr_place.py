"""Where a router of this machine has its configuration, its state and its ports."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from headway.errors import ConfigError

_Command = TypeVar("_Command", bound=Callable[..., Any])
CONFIG = "config.yaml"


def config_option(command: _Command) -> _Command:
    """`--config`, a path."""
    option = click.option("--config", type=click.Path(path_type=Path), default=CONFIG, show_default=True, help="The router's configuration.")
    return option(command)


def state_folder(config: Path) -> Path:
    """What outlives the process lies beside the configuration, unless VLLM_SR_STATE_ROOT_DIR names another place."""
    root = os.environ.get("VLLM_SR_STATE_ROOT_DIR")
    return (Path(root) if root else config.absolute().parent) / ".vllm-sr"


def port_offset() -> int:
    """Raises ConfigError for a VLLM_SR_PORT_OFFSET that is no number of ports."""
    text = os.environ.get("VLLM_SR_PORT_OFFSET", "0") or "0"
    if not text.isdecimal() or int(text) > 50000:
        raise ConfigError(f"VLLM_SR_PORT_OFFSET must be a whole number up to 50000, found {text[:40]!r}", param="VLLM_SR_PORT_OFFSET")
    return int(text)
