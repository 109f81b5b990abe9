"""The JSON Schema (2020-12) of configurations, and views of it: an index, a section, a signal, algorithm, plugin or projection."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from typing import Any, Final
from urllib.parse import quote_plus

import orjson
from pydantic.json_schema import models_json_schema

from headway.errors import NotFoundError, RequestError
from headway.router.config.document.algorithms import ALGORITHM_TYPES, Algorithm
from headway.router.config.document.document import Document
from headway.router.config.document.lookup import class_at
from headway.router.config.document.node import Node
from headway.router.config.document.projections import Projections
from headway.router.config.document.signals import Signals
from headway.router.plugins.table import PLUGINS
from headway.router.signals.table import SIGNAL_KINDS

CONTRACT: Final = "vllm-sr/config-schema/v1"
ENDPOINT: Final = "/api/v1/config/schema"
VIEWS: Final = ("index", "section", "surface", "full")
_ID: Final = "urn:headway:router-config-v0.3"


@cache
def json_schema() -> dict[str, Any]:
    """The whole schema; unknown keys are refused everywhere but in maps. `x-vllm-sr` lists the routing surfaces by kind."""
    classes = [(Document, "validation"), *((kind.configuration, "validation") for kind in PLUGINS)]
    _, schema = models_json_schema(classes, ref_template="#/$defs/{model}")  # type: ignore[arg-type]
    definitions = {name: _tidied(each) for name, each in schema["$defs"].items()}
    document = definitions.pop("Document")
    definitions["DecisionPlugin"]["allOf"] = [_plugin_rule(kind.type, kind.configuration) for kind in PLUGINS]
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": _ID,
        "title": "Router configuration v0.3",
        **document,
        "$defs": definitions,
        "x-vllm-sr": _surfaces(),
    }


def _tidied(schema: Any) -> Any:
    """Without the titles that repeat the names, and with null only where it means something beyond being absent."""
    if isinstance(schema, list):
        return [_tidied(item) for item in schema]
    if not isinstance(schema, Mapping):
        return schema
    found = {key: _tidied(value) for key, value in schema.items() if not (key == "title" and isinstance(value, str))}
    if found.get("default", ...) is None:
        del found["default"]
    return found


def _plugin_rule(type_: str, configuration: type[Node]) -> dict[str, Any]:
    return {
        "if": {"properties": {"type": {"const": type_}}, "required": ["type"]},
        "then": {"properties": {"configuration": {"$ref": f"#/$defs/{configuration.__name__}"}}},
    }


def _surfaces() -> dict[str, Any]:
    return {
        "contract_version": CONTRACT,
        "config_version": "v0.3",
        "schema_endpoint": ENDPOINT,
        "validation": {"structural": "json-schema-draft-2020-12", "semantic": "router", "endpoint": "/api/v1/config/validate"},
        "signals": [
            {
                "type": kind.type,
                "collection": kind.collection,
                "observation_key": kind.observation_key,
                "decision_referenceable": kind.in_conditions,
                "schema_ref": _reference(Signals, kind.collection),
            }
            for kind in SIGNAL_KINDS
        ],
        "algorithms": [_algorithm(type_) for type_ in ALGORITHM_TYPES],
        "plugins": [{"type": kind.type, "schema_ref": f"#/$defs/{kind.configuration.__name__}"} for kind in PLUGINS],
        "projections": [{"collection": name, "schema_ref": _reference(Projections, name)} for name in Projections.model_fields],
    }


def _algorithm(type_: str) -> dict[str, Any]:
    block = class_at((type_,), Algorithm)
    return {"type": type_} | ({} if block is None else {"config_field": type_, "schema_ref": f"#/$defs/{block.__name__}"})


def _reference(owner: type[Node], collection: str) -> str:
    item = class_at((collection, 0), owner)
    return f"#/$defs/{item.__name__}" if item else "#"


def view(name: str, *, path: str = "", kind: str = "", surface: str = "", expanded: bool = False) -> dict[str, Any]:
    """One view. Raises RequestError for a view that is none, NotFoundError `schema_unknown` for a section or surface that is not there."""
    views: Mapping[str, Callable[[], dict[str, Any]]] = {
        "full": json_schema,
        "index": _index,
        "section": lambda: _section(path, expanded),
        "surface": lambda: _surface(kind, surface),
    }
    if name not in views:
        raise RequestError(f'there is no view "{name}" of the schema', param="view", fix=f"Take one of {', '.join(VIEWS)}.")
    return views[name]()


def schema_etag() -> str:
    return f'"{hashlib.sha256(orjson.dumps(json_schema(), option=orjson.OPT_SORT_KEYS)).hexdigest()[:32]}"'


def _index() -> dict[str, Any]:
    schema = json_schema()
    index = schema["x-vllm-sr"]
    required = set(schema.get("required", ()))
    names = {kind: sorted(each[key] for each in index[collection]) for kind, (collection, key) in _KINDS.items()}
    return {
        "contract_version": CONTRACT,
        "config_version": "v0.3",
        "schema_id": _ID,
        "schema_etag": schema_etag(),
        "default_view": "index",
        "views": [{"name": each, "href": f"{ENDPOINT}?view={each}"} for each in VIEWS],
        "sections": [
            {
                "path": section,
                "description": _described(schema, schema["properties"][section]),
                "required": section in required,
                "href": f"{ENDPOINT}?view=section&path={quote_plus(section)}",
            }
            for section in sorted(schema["properties"])
        ],
        "surfaces": {
            kind: {"count": len(found), "names": found, "href_template": f"{ENDPOINT}?view=surface&kind={kind}&name={{name}}"}
            for kind, found in names.items()
        },
    }


_KINDS: Mapping[str, tuple[str, str]] = {
    "signal": ("signals", "type"),
    "algorithm": ("algorithms", "type"),
    "plugin": ("plugins", "type"),
    "projection": ("projections", "collection"),
}


def _section(path: str, expanded: bool) -> dict[str, Any]:
    schema = json_schema()
    node: Any = schema
    parts = [part for part in re.split(r"[./]", path) if part]
    for at, part in enumerate(parts):
        node = next((each["properties"][part] for each in _objects(schema, node) if part in each.get("properties", {})), None)
        if node is None:
            raise NotFoundError(f'the configuration has no section "{".".join(parts[: at + 1])}"', reason="schema_unknown")
    if expanded:
        return _focused(schema, node)
    fields = [
        {"name": name, "required": name in each.get("required", ()), "schema": _flat(field)}
        for each in _objects(schema, node)
        for name, field in each.get("properties", {}).items()
    ]
    return {"path": ".".join(parts), "description": _described(schema, node), "fields": fields}


def _surface(kind: str, name: str) -> dict[str, Any]:
    schema = json_schema()
    if kind not in _KINDS:
        raise NotFoundError(f'there is no kind of surface "{kind}"', reason="schema_unknown", fix=f"Take one of {', '.join(_KINDS)}.")
    collection, key = _KINDS[kind]
    entry = next((each for each in schema["x-vllm-sr"][collection] if each[key] == name), None)
    if entry is None:
        known = ", ".join(str(each[key]) for each in schema["x-vllm-sr"][collection])
        raise NotFoundError(f'there is no {kind} "{name}"', reason="schema_unknown", fix=f"There are {known}.")
    return {"kind": kind, **entry, "schema": _focused(schema, {"$ref": entry["schema_ref"]}) if "schema_ref" in entry else None}


def _objects(schema: Mapping[str, Any], node: Any) -> Iterator[Mapping[str, Any]]:
    """The mappings that `node` may be, through references, lists, maps and alternatives."""
    if "$ref" in node:
        yield from _objects(schema, schema["$defs"][node["$ref"].rsplit("/", 1)[1]])
    elif "properties" in node:
        yield node
    else:
        below = [*node.get("anyOf", ()), *node.get("oneOf", ()), *([node["items"]] if isinstance(node.get("items"), Mapping) else ())]
        values = node.get("additionalProperties")
        for each in [*below, *([values] if isinstance(values, Mapping) else ())]:
            yield from _objects(schema, each)


def _described(schema: Mapping[str, Any], node: Mapping[str, Any]) -> str:
    return next((each["description"] for each in _objects(schema, node) if "description" in each), "")


def _flat(field: Mapping[str, Any]) -> Mapping[str, Any]:
    return {key: value for key, value in field.items() if key != "description"}


def _focused(schema: Mapping[str, Any], node: Mapping[str, Any]) -> dict[str, Any]:
    """`node` as a schema of its own, with the definitions that it needs and no others."""
    needed: dict[str, Any] = {}
    waiting = list(_references(node))
    while waiting:
        name = waiting.pop()
        if name not in needed:
            needed[name] = schema["$defs"][name]
            waiting += _references(needed[name])
    return {"$schema": schema["$schema"], **node, "$defs": dict(sorted(needed.items()))}


def _references(node: Any) -> Sequence[str]:
    if isinstance(node, list):
        return [name for item in node for name in _references(item)]
    if not isinstance(node, Mapping):
        return []
    own = [node["$ref"].rsplit("/", 1)[1]] if isinstance(node.get("$ref"), str) else []
    return own + [name for value in node.values() for name in _references(value)]
