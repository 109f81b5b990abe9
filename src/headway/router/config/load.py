"""From a file or text to a checked document, with everything that is wrong with it in one go."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path as File
from typing import Any

from pydantic import ValidationError

from headway.errors import ConfigError
from headway.router.config.diagnostics import ConfigRejected, Diagnostic, has_errors
from headway.router.config.document.document import Document
from headway.router.config.named_variables import unset_variables
from headway.router.config.readable_part import readable_part
from headway.router.config.rules.table import cross_field
from headway.router.config.schema_errors import schema_diagnostics
from headway.router.config.yaml_reading import MAX_BYTES, read_yaml


@dataclass(frozen=True, slots=True)
class Source:
    """The text as it was written: references to the environment are still references. Relative file names in it begin at `folder`."""

    text: str
    name: str = "configuration"
    folder: File | None = None


@dataclass(frozen=True, slots=True)
class Loaded:
    """A document without errors; `diagnostics` are warnings."""

    document: Document
    diagnostics: tuple[Diagnostic, ...]
    source: Source


@dataclass(frozen=True, slots=True)
class Examined:
    """What is known about a text: all errors and warnings in the order of its lines. `document` is None unless there are no errors."""

    source: Source
    diagnostics: tuple[Diagnostic, ...]
    document: Document | None = None

    @property
    def valid(self) -> bool:
        return self.document is not None


def load_document(text_or_path: str | File, environment: Mapping[str, str] | None = None, folder: File | None = None) -> Loaded:
    """Read, substitute, check. `environment` defaults to the process's. `folder` is that of a text; a file has its own.

    Raises ConfigRejected with every diagnostic, ConfigError `config_unreadable` for a file that cannot be read.
    """
    source = read_source(text_or_path) if isinstance(text_or_path, File) else Source(text_or_path, folder=folder)
    examined = examine(source, environment)
    if examined.document is None:
        raise ConfigRejected(source.name, examined.diagnostics)
    return Loaded(examined.document, examined.diagnostics, source)


def read_source(path: File) -> Source:
    """Raises ConfigError `config_unreadable`."""
    try:
        if path.stat().st_size > MAX_BYTES:
            raise ConfigError(f"{path} has more than {MAX_BYTES >> 20} MiB", reason="config_unreadable", param=str(path))
        return Source(path.read_text(encoding="utf-8"), str(path), path.parent)
    except FileNotFoundError:
        fix = "`vllm-sr config init` writes one to start from."
        raise ConfigError(f"{path} does not exist", reason="config_unreadable", param=str(path), fix=fix) from None
    except OSError as error:
        raise ConfigError(f"{path} cannot be read: {error.strerror}", reason="config_unreadable", param=str(path)) from None
    except UnicodeDecodeError:
        raise ConfigError(f"{path} is not UTF-8 text", reason="config_unreadable", param=str(path)) from None


def examine(source: Source, environment: Mapping[str, str] | None = None) -> Examined:
    """Never raises for what is in the text."""
    environment = os.environ if environment is None else environment
    yaml = read_yaml(source.text, environment)
    found = list(yaml.diagnostics)
    document = None
    if yaml.data is not None:
        document, more = check(yaml.data, source.folder)
        found += more + unset_variables(yaml.data, environment)
    placed = [each if each.line is not None else replace(each, line=yaml.line(each.path)) for each in found]
    placed.sort(key=lambda each: each.line or 0)
    return Examined(source, tuple(placed), None if has_errors(placed) else document)


def check(data: Mapping[str, Any], folder: File | None) -> tuple[Document | None, list[Diagnostic]]:
    """The one validator: the loader, the command line and the management API come here. Diagnostics have no lines yet."""
    try:
        document = Document.of(data, folder)
    except ValidationError as error:
        found = schema_diagnostics(error, data)
        part = readable_part(data, found, folder)
        if part is not None:
            found += part.told(cross_field(part.document))
        return None, found
    return document, cross_field(document)
