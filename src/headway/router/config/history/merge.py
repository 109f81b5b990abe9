"""A patch onto a configuration's text, in which comments and order stay."""

from __future__ import annotations

import re
from collections.abc import Mapping
from io import StringIO
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError

from headway.errors import ConfigError
from headway.router.config.document.lookup import class_at

_LIST = re.compile(r"^(?P<key> *)[^\s#-][^\n]*:[ ]*(?:#[^\n]*)?\n(?:[ ]*(?:#[^\n]*)?\n)*(?P<dash> *)- ", re.MULTILINE)
_WIDTH = 4096  # never folds a line that the author did not fold


def round_trip(text: str = "") -> YAML:
    """Reads and writes YAML with its comments, order, quotes and anchors, in the indentation of `text`."""
    yaml = YAML()
    yaml.preserve_quotes = True
    yaml.width = _WIDTH
    dash, item = _list_indentation(text)
    yaml.indent(mapping=2, sequence=item, offset=dash)
    return yaml


def _list_indentation(text: str) -> tuple[int, int]:
    """How far the dash of a list's item stands to the right of its key, and the item itself; as in most files when there is no list."""
    found = _LIST.search(text)
    if found is None:
        return 0, 2
    dash = len(found["dash"]) - len(found["key"])
    return (dash, dash + 2) if dash >= 0 else (0, 2)


def merged_text(current: str, patch: str) -> str:
    """JSON Merge Patch (RFC 7396): mappings are merged, everything else replaces what was there, null removes it.

    Where null means something (`deployments: null`, a null deployment), it stands in the result. Raises ConfigError for a patch that is no mapping.
    """
    yaml = round_trip(current)
    try:
        base, change = yaml.load(current), yaml.load(patch)
    except YAMLError as error:
        raise ConfigError(f"not valid YAML: {' '.join(str(error).split())}", reason="yaml_invalid") from None
    if not isinstance(base, Mapping) or not isinstance(change, Mapping):
        raise ConfigError("a patch is a mapping of keys to values", reason="config_not_a_mapping")
    _merge(base, change, ())
    out = StringIO()
    yaml.dump(base, out)
    return out.getvalue()


def _merge(base: Any, change: Mapping[str, Any], path: tuple[str, ...]) -> None:
    for key, value in change.items():
        if value is None and not _null_means_something((*path, key)):
            base.pop(key, None)
        elif isinstance(value, Mapping) and isinstance(base.get(key), Mapping):
            _merge(base[key], value, (*path, key))
        else:
            base[key] = value


def _null_means_something(path: tuple[str, ...]) -> bool:
    above = class_at(path[:-1])
    if above is not None:
        return path[-1] in above.nullable
    owner = class_at(path[:-2])
    return owner is not None and path[-2] in owner.nullable
