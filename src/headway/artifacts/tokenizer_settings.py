"""What a model folder says about its tokenizer beside the vocabulary: special tokens, added tokens, chat templates."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from tokenizers import AddedToken

from headway.artifacts.bounded_json import read_json_object_if_present
from headway.artifacts.chat_template import MAX_TEMPLATE_CHARS
from headway.artifacts.foreign_file import regular_file_size
from headway.errors import ArtifactError

# The names under which chat templates see special tokens, as in transformers.
SPECIAL_TOKEN_NAMES: Final = ("bos_token", "eos_token", "unk_token", "sep_token", "pad_token", "cls_token", "mask_token")
DEFAULT_TEMPLATE: Final = "default"
_TEMPLATE_FOLDER: Final = "additional_chat_templates"
_FLAGS: Final = ("single_word", "lstrip", "rstrip", "normalized", "special")
_MAX_ADDED_TOKENS: Final = 1 << 20
_MAX_TEMPLATES: Final = 100


@dataclass(frozen=True, slots=True)
class TokenizerSettings:
    """`special` maps the names of SPECIAL_TOKEN_NAMES to token text.

    `added` are tokens whose flags win over those of tokenizer.json, in order of id; `ensured` are special tokens to add
    if they are not there yet. The rule is that of transformers.
    """

    special: Mapping[str, str] = field(default_factory=dict)
    added: tuple[AddedToken, ...] = ()
    ensured: tuple[AddedToken, ...] = ()
    chat_templates: Mapping[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


def read_tokenizer_settings(folder: Path) -> TokenizerSettings:
    """Read tokenizer_config.json, special_tokens_map.json and the template files of `folder`, all of them optional.

    Special tokens may be strings or objects. Raises ArtifactError (`tokenizer_config_invalid`, or a reason of
    `read_json_object`).
    """
    path = folder / "tokenizer_config.json"
    config = read_json_object_if_present(path)
    older = {} if "added_tokens_decoder" in config else read_json_object_if_present(folder / "special_tokens_map.json")
    merged = {**config, **older}
    special: dict[str, str] = {}
    named: list[AddedToken] = []
    for name in SPECIAL_TOKEN_NAMES:
        if merged.get(name) is not None:
            token = _added_token(merged[name], f"{path}: {name}", special=True)
            special[name] = token.content
            named.append(token)
    added = _decoder_tokens(config, path, frozenset(special.values()))
    ensured = [*named, *_extra_tokens(merged, path)]
    if len(added) + len(ensured) > _MAX_ADDED_TOKENS:
        raise _invalid(path, f"has {len(added) + len(ensured)} added tokens, the limit is {_MAX_ADDED_TOKENS}")
    return TokenizerSettings(special, tuple(added), tuple(ensured), _chat_templates(folder, config, path))


def _decoder_tokens(config: Mapping[str, Any], path: Path, special: frozenset[str]) -> list[AddedToken]:
    listed = config.get("added_tokens_decoder") or {}
    if not isinstance(listed, dict) or not all(key.isdecimal() and len(key) < 10 for key in listed):
        raise _invalid(path, "added_tokens_decoder must map token ids to objects")
    where = f"{path}: added_tokens_decoder"
    tokens = [_added_token(listed[key], where, special=False) for key in sorted(listed, key=int)]
    return [_as_special(token) if token.content in special else token for token in tokens]


def _as_special(token: AddedToken) -> AddedToken:
    return AddedToken(token.content, special=True, **{name: getattr(token, name) for name in _FLAGS if name != "special"})


def _extra_tokens(config: Mapping[str, Any], path: Path) -> list[AddedToken]:
    """`additional_special_tokens` of version 4 and `extra_special_tokens` of version 5, a list or an object."""
    extra = config.get("extra_special_tokens") or config.get("additional_special_tokens") or []
    values = list(extra.values()) if isinstance(extra, dict) else extra
    if not isinstance(values, list):
        raise _invalid(path, f"extra_special_tokens must be a list or an object, found {type(extra).__name__}")
    return [_added_token(value, f"{path}: extra_special_tokens", special=True) for value in values]


def _added_token(value: object, where: str, *, special: bool) -> AddedToken:
    if isinstance(value, str):
        return AddedToken(value, special=True, normalized=False)
    if isinstance(value, dict) and isinstance(value.get("content"), str):
        flags = {name: value[name] for name in _FLAGS if isinstance(value.get(name), bool)}
        if special:
            flags["special"] = True
        return AddedToken(value["content"], **flags)
    raise ArtifactError(f"{where} must be a string or an object with content, found {value!r:.80}",
                        reason="tokenizer_config_invalid", fix="Correct the file, or download it again.")  # fmt: skip


def _chat_templates(folder: Path, config: Mapping[str, Any], path: Path) -> dict[str, str]:
    """Name -> template. Template files come first, then tokenizer_config.json, then the older chat_template.json."""
    files = {DEFAULT_TEMPLATE: folder / "chat_template.jinja"}
    if (folder / _TEMPLATE_FOLDER).is_dir():
        files |= {file.stem: file for file in sorted((folder / _TEMPLATE_FOLDER).glob("*.jinja"))[:_MAX_TEMPLATES]}
    from_files = {name: read_template_file(file) for name, file in files.items() if file.exists() or file.is_symlink()}
    if from_files:
        return from_files
    stated = config.get("chat_template")
    if stated is None:
        path = folder / "chat_template.json"
        stated = read_json_object_if_present(path).get("chat_template")
    return named_templates(stated, f"{path}: chat_template")


def named_templates(stated: object, where: str) -> dict[str, str]:
    """A template, a list of `{"name", "template"}` or an object of them -> name -> template; nothing -> empty.

    Raises ArtifactError (`tokenizer_config_invalid`).
    """
    if stated is None:
        return {}
    if isinstance(stated, str):
        return {DEFAULT_TEMPLATE: stated}
    if isinstance(stated, list) and all(isinstance(entry, dict) for entry in stated):
        stated = {entry.get("name"): entry.get("template") for entry in stated}
    if isinstance(stated, dict) and all(isinstance(text, str) for pair in stated.items() for text in pair):
        return stated
    raise ArtifactError(f"{where} must be a string or a list of objects with name and template, found {stated!r:.80}",
                        reason="tokenizer_config_invalid", fix="Correct the file, or download it again.")  # fmt: skip


def read_template_file(path: Path) -> str:
    """A chat template from a file of its own.

    Raises ArtifactError: a reason of `regular_file_size`, `chat_template_too_large`, or `unreadable_file`.
    """
    size = regular_file_size(path, "a chat template")
    if size > 4 * MAX_TEMPLATE_CHARS:
        raise ArtifactError(f"{path} has {size} bytes, the limit for chat templates is {4 * MAX_TEMPLATE_CHARS}",
                            reason="chat_template_too_large", param=str(path))  # fmt: skip
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ArtifactError(f"{path} cannot be read as UTF-8 text: {error}", reason="unreadable_file", param=str(path)) from None


def _invalid(path: Path, found: str) -> ArtifactError:
    return ArtifactError(f"{path}: {found}", reason="tokenizer_config_invalid", param=str(path),
                         fix="Correct the file, or download it again.")  # fmt: skip
