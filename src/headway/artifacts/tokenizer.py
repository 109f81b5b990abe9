"""Text <-> token ids of one model, loaded without transformers wherever the files allow it."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from tokenizers import Tokenizer as Backend

from headway.artifacts.card import ModelCard
from headway.artifacts.chat_template import render_chat_template
from headway.artifacts.context_length import text_config
from headway.artifacts.folder_contents import TOKENIZER_FILE_SETS, tokenizer_files
from headway.artifacts.foreign_file import HEAD_BYTES, foreign_error, regular_file_size
from headway.artifacts.gguf_header import read_gguf_header
from headway.artifacts.gguf_tokenizer import gguf_tokenizer
from headway.artifacts.tokenizer_pieces import TextStart, byte_decoder
from headway.artifacts.tokenizer_settings import DEFAULT_TEMPLATE, TokenizerSettings, read_tokenizer_settings
from headway.artifacts.tokenizer_vocabularies import hf_from_backend, hf_from_folder, settings_of_hf
from headway.errors import ArtifactError, RequestError

_log = logging.getLogger(__name__)
MAX_TOKENIZER_BYTES: Final = 256 << 20  # the largest tokenizer.json known has 35 MB
_LONG_TEXT: Final = 8192  # characters; `encode` holds Python's lock, `encode_batch_fast` lets others run, at the cost of a thread


class Tokenizer:
    """One tokenizer with its special tokens and chat templates.

    `vocab_size` is one more than the largest id. `eos_ids` are all ids that end an answer, the tokenizer's own first.
    `byte_exact` tells whether tokens have exact bytes (`token_bytes`) whose concatenation is the text. `notes` are
    sentences for the log about oddities that do no harm. Safe to use from several threads.
    """

    def __init__(self, backend: Backend, settings: TokenizerSettings | None = None, *,
                 eos_ids: Iterable[int] = (), hf_loader: Callable[[], Any] | None = None):  # fmt: skip
        settings = settings or TokenizerSettings()
        self.backend = backend
        # A tokenizer.json may carry the cut of its training set-up; a server must see every token.
        backend.no_truncation()
        backend.no_padding()
        _add_missing(backend, settings)
        added = backend.get_added_tokens_decoder()
        self.vocab_size: int = max([backend.get_vocab_size(with_added_tokens=True), *(i + 1 for i in added)])
        self.added_ids: frozenset[int] = frozenset(added)
        self.special_ids: frozenset[int] = frozenset(i for i, token in added.items() if token.special)
        self.special_tokens: Mapping[str, str] = settings.special
        self.chat_templates: Mapping[str, str] = settings.chat_templates
        self.notes: tuple[str, ...] = settings.notes
        self.bos_id: int | None = self._special_id("bos_token")
        own_eos = self._special_id("eos_token")
        self.eos_ids: tuple[int, ...] = tuple(dict.fromkeys([*([] if own_eos is None else [own_eos]), *eos_ids]))
        self.adds_bos: bool = self.bos_id is not None and self.encode("")[:1] == [self.bos_id]
        self._decoder = byte_decoder(backend)
        self.byte_exact: bool = self._decoder is not None
        self._pieces: list[bytes | None] = [None] * self.vocab_size
        self._hf_loader = hf_loader
        self._hf: Any = None

    def _special_id(self, name: str) -> int | None:
        text = self.special_tokens.get(name)
        found = None if text is None else self.backend.token_to_id(text)
        return None if found is None else int(found)

    @property
    def chat_template(self) -> str | None:
        """The default chat template."""
        return self.chat_templates.get(DEFAULT_TEMPLATE)

    def encode(self, text: str, add_special_tokens: bool = True) -> list[int]:
        """Ids of `text`. Special tokens spelled out in the text become their ids, as in transformers.

        Raises RequestError for text that is not valid Unicode (a lone surrogate).
        """
        try:
            ids: list[int]
            if len(text) > _LONG_TEXT:
                ids = self.backend.encode_batch_fast([text], add_special_tokens=add_special_tokens)[0].ids
            else:
                ids = self.backend.encode(text, add_special_tokens=add_special_tokens).ids
        except TypeError:
            if isinstance(text, str):
                raise RequestError("The text holds a lone surrogate, which is no character; it cannot be encoded",
                                   fix="Send valid Unicode: surrogates only in pairs.") from None  # fmt: skip
            raise
        return ids

    def decode(self, ids: Sequence[int], skip_special_tokens: bool = True) -> str:
        """The text of `ids`; ids outside the vocabulary add nothing.

        For a byte-exact tokenizer this is the UTF-8 decoding of all bytes, where each invalid stretch becomes U+FFFD.
        It equals the decoder of `tokenizers` except on invalid bytes of byte-fallback vocabularies, where that decoder
        also destroys valid neighbours.
        """
        shown = [i for i in ids if not (skip_special_tokens and i in self.special_ids)]
        if self._decoder is None:
            text: str = self.backend.decode([i for i in shown if 0 <= i < self.vocab_size], skip_special_tokens=False)
            return text
        start = TextStart(self._decoder)
        parts = [self.token_bytes(i) if start.settled else self.start_piece(start, i) for i in shown]
        return b"".join(parts).decode("utf-8", "replace")

    def token_name(self, token_id: int) -> str | None:
        """The token as the vocabulary spells it; None outside of the vocabulary."""
        if not 0 <= token_id < self.vocab_size:
            return None
        name: str | None = self.backend.id_to_token(token_id)
        return name

    def token_bytes(self, token_id: int) -> bytes:
        """The bytes that a token adds in running text, special tokens spelled out; empty outside of the vocabulary.

        Exact when `byte_exact`. Otherwise the bytes of the text of the token alone.
        """
        if not 0 <= token_id < self.vocab_size:
            return b""
        piece = self._pieces[token_id]
        if piece is None:
            piece = self._piece(token_id)
            self._pieces[token_id] = piece
        return piece

    def _piece(self, token_id: int) -> bytes:
        name = self.token_name(token_id)
        if name is None:
            return b""
        if self._decoder is not None:
            return self._decoder.piece(name)
        alone: str = self.backend.decode([token_id], skip_special_tokens=False)
        return alone.encode()

    def token_text(self, token_id: int) -> str:
        """`token_bytes` as text, invalid UTF-8 shown as U+FFFD."""
        return self.token_bytes(token_id).decode("utf-8", "replace")

    def text_start(self) -> TextStart | None:
        """The state of a text that begins now, for `start_piece`; None when not byte-exact."""
        return None if self._decoder is None else TextStart(self._decoder)

    def start_piece(self, start: TextStart, token_id: int) -> bytes:
        """As `token_bytes`, less what the decoder drops at the start of a text."""
        name = self.token_name(token_id)
        return b"" if name is None else start.piece(name)

    def render_chat(
        self,
        messages: Sequence[Mapping[str, Any]],
        *,
        add_generation_prompt: bool = True,
        continue_final_message: bool = False,
        chat_template: str | None = None,
        tools: Sequence[Mapping[str, Any]] | None = None,
        documents: Sequence[Mapping[str, Any]] | None = None,
        **kwargs: Any,
    ) -> str:
        """The prompt text of a chat, special tokens spelled out: encode it with `add_special_tokens=False`.

        `chat_template` is a template or the name of one of `chat_templates`; further keywords are variables for it.
        Raises RequestError: `chat_template_missing`, or those of `render_chat_template`.
        """
        return render_chat_template(
            self._choose_template(chat_template, tools is not None), messages, special_tokens=self.special_tokens,
            add_generation_prompt=add_generation_prompt, continue_final_message=continue_final_message,
            tools=tools, documents=documents, variables=kwargs,
        )  # fmt: skip

    def _choose_template(self, given: str | None, with_tools: bool) -> str:
        if given is not None:
            return self.chat_templates.get(given, given)
        for name in ("tool_use", DEFAULT_TEMPLATE) if with_tools else (DEFAULT_TEMPLATE,):
            if name in self.chat_templates:
                return self.chat_templates[name]
        if self.chat_templates:
            found, fix = f"only templates named {', '.join(sorted(self.chat_templates)[:20])}", "Name one of them in chat_template."
        else:
            found, fix = "none", "Start the server with --chat-template, or use /v1/completions with a prompt."
        raise RequestError(f"This model needs a default chat template to render messages, found {found}",
                           reason="chat_template_missing", param="messages", fix=fix)  # fmt: skip

    def hf(self) -> Any:
        """The same tokenizer as an object of transformers, made on first use (imports transformers)."""
        if self._hf is None:
            self._hf = self._hf_loader() if self._hf_loader else hf_from_backend(self.backend, self.special_tokens, self.chat_templates)
        return self._hf


def _add_missing(backend: Backend, settings: TokenizerSettings) -> None:
    if settings.added:
        backend.add_tokens(list(settings.added))
    there = {token.content for token in backend.get_added_tokens_decoder().values()}
    if missing := [token for token in settings.ensured if token.content not in there]:
        backend.add_special_tokens(missing)


def load_tokenizer(card: ModelCard, tokenizer: str | None = None) -> Tokenizer:
    """The tokenizer of a model, or the one at `tokenizer`: a folder, a tokenizer.json or a GGUF file.

    Raises ArtifactError (`tokenizer_missing` with what was looked for, `tokenizer_invalid`, `tokenizer_needs_package`,
    `tokenizer_config_invalid`) and NotBuiltError for vocabularies of other kinds.
    """
    stated = text_config(card.config)
    ends = [*_ids(card.generation_config.get("eos_token_id")), *_ids(card.config.get("eos_token_id")), *_ids(stated.get("eos_token_id"))]
    if tokenizer is not None:
        place = Path(tokenizer).expanduser()
    else:
        place = card.files[0] if card.format == "gguf" and card.files else card.path
    loaded = tokenizer_at(place, ends)
    size = stated.get("vocab_size")
    if isinstance(size, int) and loaded.vocab_size > size:
        loaded.notes += (f"the tokenizer has {loaded.vocab_size} tokens and the model {size}: ids from {size} on cannot be used",)
    for note in loaded.notes:
        _log.warning("%s: %s", place, note)
    return loaded


def tokenizer_at(place: Path, ends: Sequence[int] = ()) -> Tokenizer:
    """The tokenizer in a folder, a tokenizer.json or a GGUF file; `ends` are further ids that end an answer.

    Raises what `load_tokenizer` raises.
    """
    if place.is_dir():
        return _from_folder(place, ends)
    if place.suffix == ".gguf":
        built = gguf_tokenizer(read_gguf_header(place).metadata, str(place))
        return Tokenizer(built.backend, built.settings, eos_ids=[*built.eos_ids, *ends])
    if place.is_file():
        return _from_json(place, ends)
    raise ArtifactError(f"No tokenizer at {place}: expected a folder, a tokenizer.json or a .gguf file, found nothing",
                        reason="tokenizer_missing", param="tokenizer", fix="Give the path of one with --tokenizer.")  # fmt: skip


def _from_folder(folder: Path, ends: Sequence[int]) -> Tokenizer:
    name = tokenizer_files(folder)
    if name == "tokenizer.json":
        return _from_json(folder / name, ends)
    if name is None:
        looked_for = ", ".join(" + ".join(names) for names in TOKENIZER_FILE_SETS)
        raise ArtifactError(f"No tokenizer in {folder}: looked for {looked_for}", reason="tokenizer_missing", param=str(folder),
                            fix="Add the tokenizer files of the model, or give another folder with --tokenizer.")  # fmt: skip
    hf = hf_from_folder(folder, name)
    stated = read_tokenizer_settings(folder)
    settings = replace(stated, special={**settings_of_hf(hf), **stated.special}, added=(), ensured=())
    return Tokenizer(hf.backend_tokenizer, settings, eos_ids=ends, hf_loader=lambda: hf)


def _from_json(path: Path, ends: Sequence[int]) -> Tokenizer:
    size = regular_file_size(path, "a tokenizer.json")
    if size > MAX_TOKENIZER_BYTES:
        raise ArtifactError(f"{path} has {size} bytes, the limit for a tokenizer is {MAX_TOKENIZER_BYTES}",
                            reason="tokenizer_invalid", param=str(path))  # fmt: skip
    try:
        backend = Backend.from_file(str(path))
    except Exception as error:  # `tokenizers` raises plain Exception
        with path.open("rb") as file:
            head = file.read(HEAD_BYTES)
        raise foreign_error(path, "a tokenizer.json", head, size, otherwise=str(error)[:300], reason="tokenizer_invalid") from None
    whole_folder = path.name == "tokenizer.json"  # another name is a tokenizer by itself, unknown to transformers
    return Tokenizer(backend, read_tokenizer_settings(path.parent), eos_ids=ends,
                     hf_loader=(lambda: hf_from_folder(path.parent, path.name)) if whole_folder else None)  # fmt: skip


def _ids(value: object) -> list[int]:
    """`eos_token_id` of a configuration file: absent, one id, or a list of them."""
    values = value if isinstance(value, list | tuple) else [value]
    return [i for i in values if isinstance(i, int) and not isinstance(i, bool) and i >= 0]
