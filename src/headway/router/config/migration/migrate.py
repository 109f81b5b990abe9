"""From any earlier layout to v0.3: what was done, what a person has to do, and a text that validates."""

from __future__ import annotations

from collections.abc import Callable, Mapping, MutableMapping, Sequence
from dataclasses import dataclass
from io import StringIO
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.comments import CommentedMap
from ruamel.yaml.error import YAMLError

from headway.errors import ConfigError
from headway.router.config.diagnostics import Diagnostic
from headway.router.config.history.merge import round_trip
from headway.router.config.history.plan import diff
from headway.router.config.load import Source, examine
from headway.router.config.migration.embeddings import migrate_embeddings
from headway.router.config.migration.execution import migrate_deployments
from headway.router.config.migration.flat_layout import move_blocks, move_models, move_routing
from headway.router.config.migration.modules import migrate_modules
from headway.router.config.migration.provider_models import migrate_providers
from headway.router.config.migration.routing import drop_nli, migrate_algorithms, migrate_latency, migrate_names
from headway.router.config.migration.tree import Step, Tree, remove
from headway.router.config.yaml_reading import read_yaml

VERSION = "v0.3"
_ORDER = ("version", "listeners", "providers", "routing", "entrypoints", "recipes", "global")

STEPS: Sequence[Callable[[Tree], None]] = (
    move_routing,
    move_models,
    move_blocks,
    migrate_providers,
    migrate_names,
    drop_nli,
    migrate_latency,
    migrate_algorithms,
    migrate_deployments,
    migrate_modules,
    migrate_embeddings,
)
"""Oldest layout first: each leaves what the next one knows."""


@dataclass(frozen=True, slots=True)
class Migrated:
    """`text` is the new configuration, the old one when nothing had to be done. `open` is what a person has to do, `remaining` what is wrong
    with the result all the same."""

    text: str
    done: tuple[Step, ...]
    open: tuple[Step, ...]
    remaining: tuple[Diagnostic, ...]
    warnings: tuple[Diagnostic, ...]
    diff: str

    @property
    def complete(self) -> bool:
        return not self.open and not self.remaining


def migrate(source: Source, environment: Mapping[str, str] | None = None) -> Migrated:
    """Idempotent: migrating the result changes nothing. Raises ConfigError for a text that is no YAML mapping."""
    yaml, root = _loaded(source)
    tree = Tree(root)
    for step in STEPS:
        step(tree)
    _set_version(tree)
    _drop_empty(tree)
    text = source.text
    if any(step.kind == "done" for step in tree.steps):
        out = StringIO()
        yaml.dump(_ordered(tree.root), out)
        text = out.getvalue()
    examined = examine(Source(text, source.name, source.folder), environment)
    return Migrated(
        text=text,
        done=tuple(step for step in tree.steps if step.kind == "done"),
        open=tuple(step for step in tree.steps if step.kind == "open"),
        remaining=tuple(each for each in examined.diagnostics if each.severity == "error"),
        warnings=tuple(each for each in examined.diagnostics if each.severity == "warning"),
        diff=diff(source.text, text, (source.name, f"{source.name} (migrated)")),
    )


def _loaded(source: Source) -> tuple[YAML, MutableMapping[str, Any]]:
    """The tree with its comments. The text is read by the loader first, which refuses what cannot be a configuration."""
    checked = read_yaml(source.text, {})
    problems = [each for each in checked.diagnostics if each.severity == "error"]
    if checked.data is None or problems:
        raise ConfigError(f"{source.name} cannot be migrated: {problems[0] if problems else 'it is empty'}", reason="config_unreadable")
    yaml = round_trip(source.text)
    try:
        root = yaml.load(source.text)
    except YAMLError as error:
        raise ConfigError(f"{source.name} cannot be migrated: {' '.join(str(error).split())}", reason="config_unreadable") from None
    return yaml, root


def _set_version(tree: Tree) -> None:
    before = tree.root.get("version")
    if before == VERSION:
        return
    if "version" in tree.root:
        tree.root["version"] = VERSION
    elif isinstance(tree.root, CommentedMap):
        tree.root.insert(0, "version", VERSION)
    tree.done("version", f"{before if before is not None else 'none'} is {VERSION} now")


_EMPTIED = (
    ("global", "model_catalog", "modules", "modality_detector", "classifier"),
    ("global", "model_catalog", "modules", "classifier"),
    ("global", "model_catalog", "modules"),
    ("global", "model_catalog", "embeddings", "semantic", "embedding_config"),
    ("global", "model_catalog", "embeddings", "semantic"),
    ("global", "model_catalog", "embeddings"),
    ("global", "model_catalog", "system"),
    ("global", "model_catalog"),
    ("global", "integrations", "looper"),
    ("global", "integrations"),
    ("global", "router"),
    ("global",),
    ("providers", "defaults"),
)
"""Deepest first."""


def _drop_empty(tree: Tree) -> None:
    """What a migration emptied says nothing."""
    if not any(step.kind == "done" for step in tree.steps):
        return
    for path in _EMPTIED:
        place, above = tree.mapping(*path), tree.mapping(*path[:-1])
        if place is not None and not place and above is not None:
            remove(above, path[-1])


def _ordered(root: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    """The sections that a migration added go to their usual places; those that were there keep theirs."""
    if not isinstance(root, CommentedMap):
        return root
    for key in reversed(_ORDER):
        if key in root and list(root).index(key) > _place(root, key):
            value, comments = root[key], root.ca.items.pop(key, None)
            del root[key]
            root.insert(_place(root, key), key, value)
            if comments is not None:
                root.ca.items[key] = comments
    return root


def _place(root: CommentedMap, key: str) -> int:
    """Just before the first section that usually comes later."""
    later = _ORDER[_ORDER.index(key) + 1 :]
    return min((at for at, name in enumerate(root) if name in later), default=len(root) - 1)
