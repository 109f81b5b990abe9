"""Embedding models of earlier versions: now the deployment that bindings.embedding names."""

from __future__ import annotations

from typing import Final

from ruamel.yaml.comments import CommentedMap

from headway.router.config.diagnostics import Path
from headway.router.config.migration.legacy_models import repository_of
from headway.router.config.migration.tree import Mapping, Tree

_SEMANTIC: Final[Path] = ("global", "model_catalog", "embeddings", "semantic")
_CONFIG: Final[Path] = (*_SEMANTIC, "embedding_config")
_BY_TYPE: Final = {"qwen3": "qwen3_model_path", "mmbert": "mmbert_model_path", "multimodal": "multimodal_model_path"}
_RETIRED: Final = ("gemma_model_path", "bert_model_path")
_DEFAULT: Final = "vllm-sr/Vela-1.0-Encoder-307M-Embedding"
_RE_EMBED: Final = "stored vectors stay apart from the new model's; `vllm-sr storage reembed` makes them anew, and thresholds have to be checked"


def migrate_embeddings(tree: Tree) -> None:
    semantic = tree.mapping(*map(str, _SEMANTIC))
    if semantic is None:
        return
    config = tree.mapping(*map(str, _CONFIG))
    repository = _chosen(semantic, config)
    if repository is not None:
        _bind(tree, repository, semantic)
    for key in (*_RETIRED, *_BY_TYPE.values(), "use_cpu"):
        tree.drop(semantic, key, _SEMANTIC, "the model is a deployment, which bindings.embedding names")
    for key in ("model_type", "backend", "target_dimension", "target_layer", "preload_embeddings", "full_context"):
        tree.drop(config, key, _CONFIG, "the deployment that bindings.embedding names says so")


def _chosen(semantic: Mapping, config: Mapping | None) -> str | None:
    """The model that was in use; None when the settings name none."""
    kind = str((config or {}).get("model_type") or "").strip().lower()
    slots = [_BY_TYPE[kind]] if kind in _BY_TYPE else [*_BY_TYPE.values(), *_RETIRED]
    for slot in slots:
        given = semantic.get(slot)
        if given:
            return repository_of(given) or (_DEFAULT if slot in _RETIRED else str(given))
    return _DEFAULT if kind in ("gemma", "bert", *_BY_TYPE) else None


def _bind(tree: Tree, repository: str, semantic: Mapping) -> None:
    if semantic.get("endpoint"):
        return
    bindings = tree.made("global", "model_catalog", "bindings")
    if "embedding" in bindings:
        return
    deployment = CommentedMap(provider="model_runtime", artifact=repository)
    if semantic.get("use_cpu") is not False:
        deployment["device"] = "cpu"
    tree.made("global", "model_catalog", "deployments").setdefault("embedding", deployment)
    bindings["embedding"] = CommentedMap(deployment="embedding", contract="embedding.v1")
    tree.done((*_SEMANTIC,), f"the embedding model runs as deployment embedding ({repository}); {_RE_EMBED}")
    if not repository.startswith("/") and repository.count("/") != 1:
        tree.open(_SEMANTIC, f"{repository} is a relative path; write the Hub repository or the absolute path of the package")
