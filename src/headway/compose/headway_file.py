"""headway.yaml: which engines, runtimes and router `headway up` runs."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Final

from pydantic import Field, ValidationError

from headway.errors import ConfigError
from headway.router.config.diagnostics import ConfigRejected, Diagnostic, has_errors
from headway.router.config.document.node import Node
from headway.router.config.load import read_source
from headway.router.config.schema_errors import schema_diagnostics
from headway.router.config.yaml_reading import read_yaml

FlagValue = bool | int | float | str | list[str]
_NAME: Final = r"^[a-z][a-z0-9-]{0,31}$"
DEMONSTRATION: Final = "Write a Python function that adds two numbers."


class EnginePart(Node):
    """One `headway serve`. `served_name` is the model's name for clients; the router sees the engine as `name`."""

    name: str = Field(pattern=_NAME)
    model: str = Field(min_length=1)
    served_name: str | None = None
    host: str = "127.0.0.1"
    port: int = Field(ge=1, le=65535)
    flags: dict[str, FlagValue] = Field(default_factory=dict)
    accept_licences: list[str] = Field(default_factory=list)


class RuntimePart(Node):
    """One `vllm-srun serve`."""

    name: str = Field(pattern=_NAME)
    models: list[str] = Field(min_length=1)
    host: str = "127.0.0.1"
    port: int = Field(default=8100, ge=1, le=65535)
    flags: dict[str, FlagValue] = Field(default_factory=dict)


class RouterPart(Node):
    """One `vllm-sr serve`. `config` is read from the folder of headway.yaml; without it the router of the default stack runs. `demonstration` is asked
    when everything is up; an empty one asks nothing."""

    config: str | None = None
    flags: dict[str, FlagValue] = Field(default_factory=dict)
    demonstration: str = DEMONSTRATION


class HeadwayFile(Node):
    """Parts are started side by side. Without `router` none is started."""

    engines: list[EnginePart] = Field(default_factory=list)
    runtimes: list[RuntimePart] = Field(default_factory=list)
    router: RouterPart | None = None


def read_headway_file(path: Path, environment: Mapping[str, str] | None = None) -> HeadwayFile:
    """Raises ConfigRejected with every error and its line; ConfigError for a file that cannot be read."""
    source = read_source(path)
    yaml = read_yaml(source.text, os.environ if environment is None else environment)
    found = list(yaml.diagnostics)
    parts = HeadwayFile()
    if yaml.data is not None:
        try:
            parts = HeadwayFile.model_validate(yaml.data)
            found += _across(parts)
        except ValidationError as error:
            found += schema_diagnostics(error, yaml.data, root=HeadwayFile)
    placed = [each if each.line is not None else replace(each, line=yaml.line(each.path)) for each in found]
    if has_errors(placed):
        raise ConfigRejected(str(path), sorted(placed, key=lambda each: each.line or 0))
    return parts


def flag_words(flags: Mapping[str, FlagValue]) -> list[str]:
    """`{"dtype": "float32", "offline": true, "accept-licence": ["a", "b"]}` as words of a command line; false is `--no-NAME`."""
    words: list[str] = []
    for name, value in flags.items():
        flag = f"--{name.replace('_', '-')}"
        if value is True:
            words.append(flag)
        elif value is False:
            words.append(f"--no-{flag[2:]}")
        else:
            for each in value if isinstance(value, list) else [value]:
                words += [flag, str(each)]
    return words


def engine_variable(name: str) -> str:
    """The variable in which a router configuration finds where an engine listens."""
    return f"HEADWAY_ENGINE_{re.sub('[^A-Z0-9]', '_', name.upper())}"


def _across(parts: HeadwayFile) -> Iterator[Diagnostic]:
    if not (parts.engines or parts.runtimes or parts.router):
        yield Diagnostic("config_empty", "there is nothing to run", fix="Name at least one of engines, runtimes and router")
    named = [("engines", at, part) for at, part in enumerate(parts.engines)] + [("runtimes", at, part) for at, part in enumerate(parts.runtimes)]
    names, ports = Counter(part.name for _, _, part in named), Counter((part.host, part.port) for _, _, part in named)
    for collection, at, part in named:
        if names[part.name] > 1:
            yield Diagnostic("name_repeated", f'"{part.name}" names {names[part.name]} parts', (collection, at, "name"), "Give each its own")
        if ports[part.host, part.port] > 1:
            yield Diagnostic("port_repeated", f"port {part.port} is taken twice", (collection, at, "port"), "Give each its own")


def find_headway_file(given: Path | None) -> Path | None:
    """The one that was named; else `headway.yaml` here, if there is one. Raises ConfigError for one that was named and is not there."""
    if given is not None and not given.exists():
        raise ConfigError(f"{given} does not exist", reason="config_unreadable", param=str(given), fix="Leave it out for the default stack.")
    here = Path("headway.yaml")
    return given or (here if here.is_file() else None)
