"""The sentence-transformers layout: how a package turns hidden states into one vector.

Sources: `modules.json`, `1_Pooling/config.json` and `config_sentence_transformers.json` as sentence-transformers writes them;
`representation_contract` in config.json as the packages of the vLLM Semantic Router carry it: version 1, with
`intermediate_normalization` "none" or "final_norm", and exits named by `onnx/model_layer_<n>.onnx`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from headway.artifacts.bounded_json import read_json_list
from headway.errors import ArtifactError
from headway.runtime.package import Package
from headway.runtime.tasks.readouts import Pooling

MODULES: Final = "modules.json"
_SETTINGS: Final = "config_sentence_transformers.json"
_POOLINGS: Final[Mapping[str, Pooling]] = {
    "cls": "cls", "mean": "mean", "lasttoken": "lasttoken",
    "pooling_mode_cls_token": "cls", "pooling_mode_mean_tokens": "mean", "pooling_mode_lasttoken": "lasttoken",
}  # fmt: skip
_NESTED: Final = (768, 512, 256, 128, 64)  # the sizes that packages with a representation contract are trained for
_EXIT: Final = re.compile(r"model_layer_(\d{1,3})\.onnx")
_CONTRACT: Final[Mapping[str, object]] = {
    "version": 1, "final_normalization": "final_norm", "pooling": "attention_mask_mean",
    "pooling_accumulation_dtype": "float32", "truncate_before_l2_normalize": True,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class SentenceLayout:
    """`dimensions` and `layers`: what may be asked for, the full size and the last layer first. `normed_exits`: the final norm
    is applied after inner layers too. `prompts` by input type. `strip`: white space at the ends of prompt and text goes."""

    pooling: Pooling
    normalize: bool
    dimensions: tuple[int, ...]
    layers: tuple[int, ...]
    normed_exits: bool = True
    prompts: Mapping[str, str] = field(default_factory=dict)
    default_prompt: str = ""
    strip: bool = False


def layout_files(package: Package) -> tuple[str, ...]:
    """The files that describe the layout, of those that are there."""
    names = (MODULES, f"{_modules(package)['Pooling']}/config.json", _SETTINGS, "sentence_bert_config.json")
    return tuple(name for name in names if package.has(name))


def read_sentence_layout(package: Package, hidden_size: int, num_layers: int, served: Sequence[int] | None = None) -> SentenceLayout:
    """`served`: the exits of the models file, None = those that the package declares.

    Raises ArtifactError (`unsupported_sentence_layout`) for modules, poolings and settings that are not built.
    """
    kinds = _modules(package)
    pooling = _pooling(package.json(f"{kinds['Pooling']}/config.json") or {}, hidden_size)
    contract = package.config.get("representation_contract")
    settings = package.json(_SETTINGS) or {}
    prompts = {name: text for name, text in (settings.get("prompts") or {}).items() if name in ("query", "document") and isinstance(text, str)}
    default = settings.get("default_prompt_name")
    return SentenceLayout(
        pooling=pooling,
        normalize="Normalize" in kinds,
        dimensions=_dimensions(package.config, contract, hidden_size),
        layers=_layers(package, num_layers, served),
        normed_exits=_normed_exits(contract),
        prompts=prompts,
        default_prompt=str((settings.get("prompts") or {}).get(default) or "") if default is not None else "",
    )


def _modules(package: Package) -> dict[str, str]:
    """Class -> folder of the modules, which must be Transformer, Pooling and perhaps Normalize."""
    found: dict[str, str] = {}
    for module in read_json_list(package.path / MODULES):
        if not isinstance(module, dict) or not isinstance(module.get("type"), str):
            raise _refused(f"{MODULES} must list modules with a type, found {module!r:.80}")
        found[module["type"].rsplit(".", 1)[-1]] = str(module.get("path") or "")
    if list(found)[:2] != ["Transformer", "Pooling"] or list(found)[2:] not in ([], ["Normalize"]):
        raise _refused(f"{MODULES} must name Transformer, Pooling and at most Normalize, found {', '.join(found)[:200]}")
    if found["Transformer"] or not re.fullmatch(r"[\w.-]+", found["Pooling"]):
        raise _refused(f"the Transformer must lie in the package itself and Pooling in a folder of it, found {found}")
    return found


def _pooling(config: Mapping[str, Any], hidden_size: int) -> Pooling:
    named = config.get("pooling_mode")
    chosen = list(named) if isinstance(named, list) else [named] if named is not None else [
        name for name, on in config.items() if name.startswith("pooling_mode_") and on is True
    ]  # fmt: skip
    if len(chosen) != 1 or chosen[0] not in _POOLINGS:
        raise _refused(f"exactly one of mean, cls and lasttoken pooling is built, found {', '.join(map(str, chosen)) or 'none'}")
    if config.get("include_prompt", True) is not True:
        raise _refused("pooling without the tokens of the prompt (include_prompt: false) is not built")
    width = config.get("embedding_dimension", config.get("word_embedding_dimension", hidden_size))
    if width != hidden_size:
        raise _refused(f"Pooling expects vectors of {width!r:.40} numbers, the model makes {hidden_size}")
    return _POOLINGS[chosen[0]]


def _dimensions(config: Mapping[str, Any], contract: Any, hidden_size: int) -> tuple[int, ...]:
    """The full size, then the smaller ones, largest first."""
    stated = config.get("matryoshka_dimensions")
    if stated is None:
        smaller: Sequence[int] = _NESTED if contract is not None else ()
    elif isinstance(stated, list) and all(isinstance(n, int) and 0 < n <= hidden_size for n in stated):
        smaller = stated
    else:
        raise _refused(f"matryoshka_dimensions must be sizes from 1 to {hidden_size}, found {stated!r:.80}")
    return (hidden_size, *sorted({n for n in smaller if n < hidden_size}, reverse=True))


def _layers(package: Package, num_layers: int, served: Sequence[int] | None) -> tuple[int, ...]:
    folder = package.path / "onnx"
    names = [entry.name for entry in folder.iterdir()] if folder.is_dir() else []
    exits = {int(match[1]) for name in names if (match := _EXIT.fullmatch(name))} if served is None else set(served)
    wrong = [layer for layer in exits if not 1 <= layer <= num_layers]
    if wrong:
        raise _refused(f"layers must be from 1 to {num_layers}, found {wrong[:8]}")
    return (num_layers, *sorted(exits - {num_layers}, reverse=True))


def _normed_exits(contract: Any) -> bool:
    """Without a contract, inner exits are the hidden states as they are."""
    if contract is None:
        return False
    between = contract.get("intermediate_normalization") if isinstance(contract, dict) else None
    if between not in ("none", "final_norm") or {key: contract.get(key) for key in _CONTRACT} != _CONTRACT:
        raise _refused(f"representation_contract must be of version 1 for embeddings, found {contract!r:.200}")
    return bool(between == "final_norm")


def _refused(message: str) -> ArtifactError:
    return ArtifactError(message, reason="unsupported_sentence_layout", param=MODULES)
