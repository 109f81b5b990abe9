"""Tokenizers through transformers: for vocabularies that come without a tokenizer.json, and for those who want its class."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

from tokenizers import Tokenizer as Backend

from headway.artifacts.tokenizer_settings import DEFAULT_TEMPLATE, SPECIAL_TOKEN_NAMES
from headway.errors import ArtifactError

_SENTENCEPIECE: Final = {"sentencepiece": "sentencepiece", "google": "protobuf"}  # module -> package


def hf_from_folder(folder: Path, found: str) -> Any:
    """`AutoTokenizer` of a local folder; `found` is the vocabulary file in it. Code in the folder is never run.

    Raises ArtifactError: `tokenizer_needs_package` when the vocabulary needs a package that is not installed,
    `tokenizer_invalid` for everything else.
    """
    if ".model" in found and (missing := [package for module, package in _SENTENCEPIECE.items() if find_spec(module) is None]):
        raise _needs_package(folder / found, f"{' and '.join(missing)} read it")
    import transformers  # seconds to import; most models never need it

    try:
        loaded = transformers.AutoTokenizer.from_pretrained(str(folder), use_fast=True, local_files_only=True, trust_remote_code=False)
    except ImportError as error:
        raise _needs_package(folder / found, _first_line(error)) from None
    except Exception as error:  # files from outside; transformers raises any type
        raise ArtifactError(f"{folder / found} cannot be used as a tokenizer: {_first_line(error)}", reason="tokenizer_invalid",
                            param=str(folder), fix="Download the tokenizer files again, or add the model's tokenizer.json.") from None  # fmt: skip
    if getattr(loaded, "backend_tokenizer", None) is None:
        raise ArtifactError(f"{folder / found} is a vocabulary that only Python code can read, found {type(loaded).__name__}",
                            reason="tokenizer_invalid", param=str(folder), fix="Add the model's tokenizer.json.")  # fmt: skip
    return loaded


def hf_from_backend(backend: Backend, special: Mapping[str, str], templates: Mapping[str, str]) -> Any:
    """Wrap `backend` as a transformers tokenizer with the same special tokens and chat templates."""
    import transformers

    made = transformers.PreTrainedTokenizerFast(tokenizer_object=backend, clean_up_tokenization_spaces=False, **special)
    made.chat_template = templates.get(DEFAULT_TEMPLATE) if set(templates) <= {DEFAULT_TEMPLATE} else dict(templates)
    return made


def settings_of_hf(loaded: Any) -> dict[str, str]:
    """The special tokens that a transformers tokenizer knows, also those its class assumes."""
    return {name: str(text) for name in SPECIAL_TOKEN_NAMES if (text := getattr(loaded, name, None)) is not None}


def _needs_package(path: Path, why: str) -> ArtifactError:
    return ArtifactError(f"{path} can only be read with packages that are not installed: {why}", reason="tokenizer_needs_package",
                         param=str(path), fix="Run `pip install sentencepiece protobuf`, or add the model's tokenizer.json.")  # fmt: skip


def _first_line(error: Exception) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[0][:300] if lines else type(error).__name__
