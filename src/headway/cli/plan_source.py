"""What `headway plan` is asked about -> ModelShape: from headers and configurations, never by downloading weights."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from headway.artifacts.card import ModelCard
from headway.capacity.model_shape import ModelShape
from headway.capacity.model_table import known_model, shape_of_size
from headway.capacity.quantity import parse_count
from headway.errors import ConfigError

_FROM_TABLE: Final = "from the table of common models: no weight file was looked at"
_FROM_CONFIG: Final = "from the configuration alone: no weight file was looked at"


@dataclass(frozen=True, slots=True)
class PlanSource:
    """`card` is None where no weight file was looked at."""

    shape: ModelShape
    card: ModelCard | None = None


def plan_source(model: str | None, params: str | None) -> PlanSource:
    """`model`: a folder, a .gguf file, a config.json, a short name, or owner/name of the hub, of which only small files are fetched;
    or `params`, a size such as 70B. Raises ConfigError, ArtifactError, CapacityError."""
    if params is not None:
        if model is not None:
            raise ConfigError("give MODEL or --params, not both", param="params")
        return PlanSource(shape_of_size(parse_count(params, "params")))
    assert model is not None
    if model.endswith(".json"):
        return PlanSource(_of_config(Path(model).expanduser(), model))
    from headway.artifacts.reference import parse_reference

    known = known_model(model)
    if known is not None and not Path(model).expanduser().exists() and "/" not in model and model != known.reference:
        return PlanSource(replace(known.shape, name=known.reference, notes=(_FROM_TABLE,)))  # a short name that is none of the registry
    parsed = parse_reference(model)
    if parsed.kind == "path":
        return _of_path(Path(parsed.name), model)
    if parsed.kind == "registry":
        return _of_registry(parsed.name)
    return _of_hub(parsed.name, parsed.revision, parsed.variant, model)


def _of_config(path: Path, reference: str) -> ModelShape:
    from headway.artifacts.bounded_json import read_json_object
    from headway.capacity.config_shape import config_shape

    return replace(config_shape(read_json_object(path), reference), notes=(_FROM_CONFIG,))


def _of_path(path: Path, reference: str, licence: str | None = None) -> PlanSource:
    """A folder with only a configuration is one without weights; anything else wrong with it is an error."""
    from headway.artifacts.model_cards import card_of_path
    from headway.capacity.card_shape import card_shape

    config = path / "config.json"
    if path.is_dir() and config.exists() and not any(entry.suffix in (".safetensors", ".gguf", ".bin", ".pt", ".pth") for entry in path.iterdir()):
        return PlanSource(_of_config(config, reference))
    card = card_of_path(path, reference, licence=licence)
    return PlanSource(card_shape(card), card)


def _of_registry(name: str) -> PlanSource:
    from headway.artifacts.cache_folders import headway_cache
    from headway.artifacts.registry import registry
    from headway.artifacts.registry_fetch import fetched
    from headway.capacity.table_shape import table_shape

    entry, known = registry()[name], known_model(name)
    if not any(file.endswith((".gguf", ".safetensors")) for file in entry.files):
        return PlanSource(table_shape(entry))
    path = fetched(entry, headway_cache())
    if path is not None:
        found = _of_path(path, name, entry.licence)
        return replace(found, shape=replace(found.shape, name=name))
    if known is not None:
        return PlanSource(replace(known.shape, stored_bytes=entry.nbytes, notes=(_FROM_TABLE,)))
    raise ConfigError(f"{name} was not fetched yet", param="model", fix=f"Run `headway inspect {name}` once.")


def _of_hub(repo: str, revision: str | None, variant: str | None, reference: str) -> PlanSource:
    from headway.artifacts.cache_folders import hub_cache
    from headway.artifacts.hub_cache import find_snapshot, spelled_as_cached
    from headway.artifacts.model_cards import card_of_path
    from headway.capacity.card_shape import card_shape

    cache = hub_cache()
    cached = find_snapshot(spelled_as_cached(repo, cache), revision, variant, cache)
    if cached is not None and cached.lacks is None:
        card = card_of_path(cached.folder, reference, revision=cached.commit)
        return PlanSource(card_shape(card), card)
    known = known_model(repo)
    if known is not None and revision is None:
        return PlanSource(replace(known.shape, name=repo, notes=(_FROM_TABLE,)))
    from headway.artifacts.hub import hub_small_files  # imports an HTTP client

    folder = hub_small_files(repo, revision, cache, lambda place: (place / "config.json").exists())
    return PlanSource(replace(_of_config(folder / "config.json", reference), name=repo))
