"""The normal form of a document: newest spellings, nothing that is the default anyway. Equal for texts that mean the same."""

from __future__ import annotations

from collections.abc import Mapping
from io import StringIO
from typing import Any

from ruamel.yaml import YAML

from headway.router.config.document.document import Document
from headway.router.config.document.node import Node

MASK = "***"
_SECRETS = frozenset({"api_key", "api_keys", "key", "password", "access_key", "auth_token", "token", "secret"})
_HEADERS = frozenset({"extra_headers", "headers"})
_WIDTH = 120


def normal_form(document: Document) -> dict[str, Any]:
    """Plain data; reading it again gives an equal document."""
    data: dict[str, Any] = document.model_dump(mode="json", by_alias=True, exclude_defaults=True)
    data["version"] = document.version
    return _with_nulls(data, document)


def _with_nulls(data: dict[str, Any], node: Node) -> dict[str, Any]:
    """Put back a null that means something: it is the default's value, but not its meaning."""
    for name, field in type(node).model_fields.items():
        key, value = field.alias or name, getattr(node, name)
        if value is None and name in type(node).nullable and name in node.model_fields_set:
            data[key] = None
        elif isinstance(value, Node) and (below := _with_nulls(data.get(key, {}), value)):
            data[key] = below
    return data


def masked(data: Any) -> Any:
    """The same with `***` for every secret. References to the environment are no secrets and stay."""
    if isinstance(data, Mapping):
        return {key: _masked_values(value) if key in _HEADERS else _hidden(value) if key in _SECRETS else masked(value) for key, value in data.items()}
    return [masked(item) for item in data] if isinstance(data, list) else data


def _masked_values(headers: Any) -> Any:
    return {name: _hidden(value) for name, value in headers.items()} if isinstance(headers, Mapping) else masked(headers)


def _hidden(value: Any) -> Any:
    if isinstance(value, list):
        return [_hidden(item) for item in value]
    if isinstance(value, str) and value and not value.startswith("$"):
        return MASK
    return masked(value)


def to_yaml(data: Mapping[str, Any]) -> str:
    """Block style, in the order of `data`. Strings that would read as something else, or as a reference, are quoted or escaped."""
    yaml = YAML(typ="safe", pure=True)
    yaml.default_flow_style = False
    yaml.width = _WIDTH
    yaml.allow_unicode = True
    yaml.representer.sort_base_mapping_type_on_output = False
    out = StringIO()
    yaml.dump(data, out)
    return out.getvalue()


def escaped(data: Any) -> Any:
    """Dollar signs doubled, for data whose references were replaced: reading the text again replaces nothing."""
    if isinstance(data, Mapping):
        return {key: escaped(value) for key, value in data.items()}
    if isinstance(data, list):
        return [escaped(item) for item in data]
    return data.replace("$", "$$") if isinstance(data, str) else data
