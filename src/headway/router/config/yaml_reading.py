"""YAML text -> plain data, the line of every part, and what is wrong with the text. Nothing in a text can make this use much memory."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.constructor import SafeConstructor
from ruamel.yaml.error import MarkedYAMLError, YAMLError
from ruamel.yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from headway.router.config.diagnostics import Diagnostic, Path
from headway.router.config.substitution import substitute
from headway.router.config.yaml_syntax import syntax_diagnostic

MAX_BYTES = 4 << 20
MAX_DEPTH = 64
MAX_NODES = 200_000  # after aliases are expanded
INTEGERS = range(-(2**63), 2**64)  # what JSON of the management address can hold

_STRING, _NULL, _TIMESTAMP, _MERGE = (f"tag:yaml.org,2002:{name}" for name in ("str", "null", "timestamp", "merge"))
_SCALARS = frozenset(f"tag:yaml.org,2002:{name}" for name in ("bool", "int", "float"))
_COLLECTIONS = frozenset(f"tag:yaml.org,2002:{name}" for name in ("map", "seq"))


@dataclass(slots=True)
class YamlText:
    """`data` is None when the text has no mapping to offer. `lines` has the line, from 1, of each key and item by its path."""

    data: dict[str, Any] | None = None
    lines: dict[Path, int] = field(default_factory=dict)
    diagnostics: list[Diagnostic] = field(default_factory=list)

    def line(self, path: Path) -> int | None:
        """The line of `path`, or of the nearest part above it that the text has."""
        for end in range(len(path), -1, -1):
            if path[:end] in self.lines:
                return self.lines[path[:end]]
        return None


class _Refused(Exception):
    def __init__(self, diagnostic: Diagnostic):
        self.diagnostic = diagnostic


def read_yaml(text: str, environment: Mapping[str, str]) -> YamlText:
    """Read one document of YAML 1.2, with references to `environment` in its values replaced.

    A plain scalar is read again after the replacement, so that `port: ${PORT:-8899}` is a number; a quoted one stays a string.
    """
    result = YamlText()
    try:
        if len(text.encode()) > MAX_BYTES:
            raise _Refused(Diagnostic("config_too_large", f"the text has more than {MAX_BYTES >> 20} MiB", fix="Split the configuration"))
        root, constructor = _root(text)
        _Reader(constructor, environment, result).document(root)
    except _Refused as refused:
        result.diagnostics.append(refused.diagnostic)
    except MarkedYAMLError as error:
        result.diagnostics.append(syntax_diagnostic(error))
    except YAMLError as error:
        result.diagnostics.append(Diagnostic("yaml_invalid", f"not valid YAML: {' '.join(str(error).split())}"))
    except RecursionError:
        result.diagnostics.append(_too_deep(None))
    return result


def _root(text: str) -> tuple[Node, SafeConstructor]:
    yaml = YAML(typ="safe", pure=True)
    constructor, _ = yaml.get_constructor_parser(text)
    composer = constructor.composer
    if not composer.check_node():
        raise _Refused(Diagnostic("config_empty", "the text has no configuration", fix="`vllm-sr config init` writes one to start from"))
    root = composer.get_node()
    if composer.check_node():
        line = composer.get_node().start_mark.line + 1
        raise _Refused(Diagnostic("yaml_several_documents", "a second YAML document begins here", fix="Keep one document in the file", line=line))
    return root, constructor


def _too_deep(line: int | None) -> Diagnostic:
    return Diagnostic("config_too_deep", f"values are nested more than {MAX_DEPTH} deep", line=line)


class _Reader:
    def __init__(self, constructor: SafeConstructor, environment: Mapping[str, str], result: YamlText):
        self._constructor = constructor
        self._environment = environment
        self._result = result
        self._nodes = 0

    def document(self, root: Node) -> None:
        if not isinstance(root, MappingNode):
            found = "nothing" if getattr(root, "tag", None) == _NULL else "a list" if isinstance(root, SequenceNode) else "a single value"
            reason = "config_empty" if found == "nothing" else "config_not_a_mapping"
            raise _Refused(Diagnostic(reason, f"a configuration is a mapping of keys to values; found {found}", line=root.start_mark.line + 1))
        self._result.lines[()] = root.start_mark.line + 1
        self._result.data = self._mapping(root, ())

    def _value(self, node: Node, path: Path) -> Any:
        self._nodes += 1
        if self._nodes > MAX_NODES:
            raise _Refused(
                Diagnostic("config_too_large", f"the configuration has more than {MAX_NODES} values (aliases count each time)", line=_line(node))
            )
        if len(path) > MAX_DEPTH:
            raise _Refused(_too_deep(_line(node)))
        if isinstance(node, ScalarNode):
            return self._scalar(node, path)
        if node.tag not in _COLLECTIONS:
            self._complain("tag_unknown", f"the tag {node.tag} has no meaning here", path, node)
        if isinstance(node, MappingNode):
            return self._mapping(node, path)
        return [self._item(item, (*path, index)) for index, item in enumerate(node.value)]

    def _item(self, node: Node, path: Path) -> Any:
        self._result.lines[path] = _line(node)
        return self._value(node, path)

    def _mapping(self, node: MappingNode, path: Path) -> dict[str, Any]:
        data: dict[str, Any] = {}
        self._fill(data, node, path)
        return data

    def _fill(self, data: dict[str, Any], node: MappingNode, path: Path) -> None:
        """Add what `data` does not have: a mapping's own keys come first, then those merged by `<<`, the earlier anchor before the later."""
        own: dict[str, int] = {}
        merged: list[Node] = []
        for key_node, value_node in node.value:
            key = key_node.value
            if not isinstance(key_node, ScalarNode):
                self._complain("key_invalid", "a key has to be a single word, not a list or mapping", path, key_node)
            elif key_node.tag == _MERGE:
                merged += value_node.value if isinstance(value_node, SequenceNode) else [value_node]
            elif key in own:
                self._complain("key_repeated", f'key "{key}" stands here a second time (first in line {own[key]})', path, key_node)
            else:
                own[key] = _line(key_node)
                if key not in data:
                    self._result.lines[(*path, key)] = own[key]
                    data[key] = self._value(value_node, (*path, key))
        for source in merged:
            self._nodes += 1
            if isinstance(source, MappingNode) and self._nodes <= MAX_NODES:
                self._fill(data, source, path)
            else:
                self._complain("key_invalid", "<< takes a mapping or a list of mappings", path, source)

    def _scalar(self, node: ScalarNode, path: Path) -> Any:
        text, tag = node.value, node.tag
        outcome = substitute(text, self._environment)
        if outcome.changed:
            text = outcome.text
            plain = node.style in (None, "")
            tag = str(self._constructor.resolver.resolve(ScalarNode, text, (True, False))) if plain else tag
            for name in outcome.unset:
                self._warn_unset(name, path, node)
        if tag == _NULL:
            return None
        if tag in _SCALARS:
            try:
                value = self._constructor.construct_object(ScalarNode(tag, text, node.start_mark, node.end_mark))
                if not isinstance(value, int) or value in INTEGERS:
                    return value
                self._complain("value_invalid", f"the number {text[:40]} does not fit into 64 bits", path, node)
                return None
            except (ValueError, YAMLError):
                self._complain("value_invalid", f'"{text}" cannot be read as {tag.rsplit(":", 1)[1]}', path, node)
                return None
        if tag not in (_STRING, _TIMESTAMP):  # no field is a time: 2026-10-20 is a string here
            self._complain("tag_unknown", f"the tag {tag} has no meaning here", path, node)
        return text

    def _complain(self, reason: str, message: str, path: Path, node: Node) -> None:
        self._result.diagnostics.append(Diagnostic(reason, message, path, line=_line(node)))

    def _warn_unset(self, name: str, path: Path, node: Node) -> None:
        fix = f"Set it, or give a default: ${{{name}:-...}}"
        message = f"the environment variable {name} is not set; its place stays empty"
        self._result.diagnostics.append(Diagnostic("environment_unset", message, path, fix, _line(node), "warning"))


def _line(node: Node) -> int:
    return int(node.start_mark.line) + 1
