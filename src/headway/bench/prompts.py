"""What is asked: prompts of known length, from random tokens or from a file.

`tokenizer` is anything with encode, decode, vocab_size and special_ids (`artifacts.tokenizer.Tokenizer`).
"""

from __future__ import annotations

import json
import random
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from headway.errors import ConfigError, NotBuiltError

DATASETS = ("random", "sharegpt", "sonnet", "prefix_repetition")
NOT_BUILT = ("hf", "random-rerank", "random-mm", "burstgpt", "custom", "spec_bench")
_TRIES = 10  # to find a text of random tokens that encodes to the wanted length
_POOL_DRAWS = 4096
_POOL_LEAST = 64  # with fewer stable tokens all drawn ones are used


class PromptTokenizer(Protocol):
    """The part of a tokenizer that prompts need."""

    @property
    def vocab_size(self) -> int: ...
    @property
    def special_ids(self) -> AbstractSet[int]: ...
    def encode(self, text: str, add_special_tokens: bool = True) -> list[int]: ...
    def decode(self, ids: list[int], skip_special_tokens: bool = True) -> str: ...


@dataclass(frozen=True, slots=True)
class Prompt:
    """One thing to ask: its text, its tokens (without any that the server adds), how many tokens are wanted back."""

    text: str
    token_ids: tuple[int, ...]
    output_len: int


@dataclass(frozen=True, slots=True)
class DatasetOptions:
    """What `make_prompts` needs to know; lengths are in tokens, fields are named after the flags."""

    name: str = "random"
    path: str | None = None
    count: int = 1000
    seed: int = 0
    input_len: int = 1024
    output_len: int | None = 128  # None: as long as the answer in the file
    range_ratio: float = 0.0
    prefix_len: int = 0  # random: shared by all; sonnet: lines of about that many tokens shared by all
    prefix_count: int = 10  # prefix_repetition
    suffix_len: int = 256  # prefix_repetition


def make_prompts(options: DatasetOptions, tokenizer: PromptTokenizer) -> list[Prompt]:
    """Make `options.count` prompts. The same options and tokenizer give the same prompts.

    Raises ConfigError for a missing or unusable file and for lengths that make no sense, NotBuiltError for datasets of
    vLLM that do not exist here.
    """
    if options.name in NOT_BUILT:
        raise NotBuiltError(
            f"--dataset-name {options.name} is not built yet", param="dataset_name", fix=f"Use one of {', '.join(DATASETS)}."
        )
    if options.name not in DATASETS:
        raise ConfigError(
            f"There is no dataset {options.name!r}", param="dataset_name", fix=f"Use one of {', '.join(DATASETS)}."
        )
    if options.count < 1 or options.input_len < 1 or not 0 <= options.range_ratio < 1:
        raise ConfigError(
            f"Expected at least one prompt, an input length of at least 1 and a range ratio in [0, 1), found "
            f"{options.count}, {options.input_len} and {options.range_ratio}",
            param="num_prompts",
        )
    rng = random.Random(options.seed)
    makers = {"random": _random, "sharegpt": _sharegpt, "sonnet": _sonnet, "prefix_repetition": _prefix_repetition}
    return makers[options.name](options, tokenizer, rng)


class RandomText:
    """Texts of random tokens. Draws once a pool of tokens that survive decoding and encoding by themselves."""

    def __init__(self, tokenizer: PromptTokenizer, rng: random.Random):
        self._tokenizer, self._rng = tokenizer, rng
        ordinary = [token for token in range(tokenizer.vocab_size) if token not in tokenizer.special_ids]
        drawn = rng.sample(ordinary, min(len(ordinary), _POOL_DRAWS))
        stable = [token for token in drawn if self._encode(tokenizer.decode([token])) == [token]]
        self._pool = stable if len(stable) >= _POOL_LEAST else drawn

    def _encode(self, text: str) -> list[int]:
        return self._tokenizer.encode(text, add_special_tokens=False)

    def make(self, length: int, prefix: str = "") -> str:
        """`prefix` followed by random tokens, as a text that encodes to `length` tokens.

        Joining may merge tokens, so the text is encoded again and mended a few times; a tokenizer that never settles
        leaves a text of a slightly other length, and whoever counts tokens must count this text's.
        """
        head = self._encode(prefix) if prefix else []
        ids, text = head, prefix
        for _ in range(_TRIES):
            if ids[: len(head)] != head:  # the first new token merged with the prefix, which must stay shared
                ids = head
            ids = ids[:length] + self._rng.choices(self._pool, k=max(0, length - len(ids)))
            text = self._tokenizer.decode(ids, skip_special_tokens=False)
            ids = self._encode(text)
            if len(ids) == length and ids[: len(head)] == head:
                break
        return text


def _prompt(tokenizer: PromptTokenizer, text: str, output_len: int) -> Prompt:
    return Prompt(text, tuple(tokenizer.encode(text, add_special_tokens=False)), output_len)


def _around(middle: int, ratio: float, rng: random.Random) -> int:
    return rng.randint(max(1, round(middle * (1 - ratio))), max(1, round(middle * (1 + ratio))))


def _output_len(options: DatasetOptions, param: str) -> int:
    if options.output_len is None or options.output_len < 1:
        raise ConfigError(f"--dataset-name {options.name} needs an output length of at least 1", param=param)
    return options.output_len


def _random(options: DatasetOptions, tokenizer: PromptTokenizer, rng: random.Random) -> list[Prompt]:
    wanted = _output_len(options, "random_output_len")
    texts = RandomText(tokenizer, rng)
    prefix = texts.make(options.prefix_len) if options.prefix_len else ""
    prompts = []
    for _ in range(options.count):
        length = options.prefix_len + _around(options.input_len, options.range_ratio, rng)
        text = texts.make(length, prefix)
        prompts.append(_prompt(tokenizer, text, _around(wanted, options.range_ratio, rng)))
    return prompts


def _prefix_repetition(options: DatasetOptions, tokenizer: PromptTokenizer, rng: random.Random) -> list[Prompt]:
    """`prefix_count` prefixes, each used equally often with a random suffix of its own, in random order."""
    wanted = _output_len(options, "prefix_repetition_output_len")
    if options.prefix_count < 1 or options.prefix_len < 1:
        raise ConfigError("prefix_repetition needs at least one prefix of at least one token", param="prefix_repetition_prefix_len")
    texts = RandomText(tokenizer, rng)
    prefixes = [texts.make(options.prefix_len) for _ in range(options.prefix_count)]
    length = options.prefix_len + options.suffix_len
    asked = [texts.make(length, prefixes[i % options.prefix_count]) for i in range(options.count)]
    rng.shuffle(asked)
    return [_prompt(tokenizer, text, wanted) for text in asked]


def _sonnet(options: DatasetOptions, tokenizer: PromptTokenizer, rng: random.Random) -> list[Prompt]:
    """Lines of a text file: a shared beginning of about `prefix_len` tokens, then random lines up to `input_len`."""
    lines = [line + "\n" for line in _read(options).splitlines() if line.strip()]
    if not lines:
        raise ConfigError(f"{options.path} has no lines", param="dataset_path")
    head = "Pick as many lines as you can from these poem lines:\n"
    mean = max(1.0, sum(len(tokenizer.encode(line, add_special_tokens=False)) for line in lines) / len(lines))
    room = max(1, round((options.input_len - len(tokenizer.encode(head, add_special_tokens=False))) / mean))
    shared = min(round(options.prefix_len / mean), room, len(lines))
    return [
        _prompt(
            tokenizer,
            head + "".join(lines[:shared] + [rng.choice(lines) for _ in range(room - shared)]),
            _output_len(options, "sonnet_output_len"),
        )
        for _ in range(options.count)
    ]


def _sharegpt(options: DatasetOptions, tokenizer: PromptTokenizer, rng: random.Random) -> list[Prompt]:
    """First question and answer of each conversation of a ShareGPT file; very short and very long ones are left out."""
    try:
        conversations: Any = json.loads(_read(options))
        pairs = [
            (turns[0]["value"], turns[1]["value"])
            for turns in (entry.get("conversations") or entry.get("conversation") or [] for entry in conversations)
            if len(turns) >= 2
        ]
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise ConfigError(
            f"{options.path} is not a ShareGPT file: {error!r}",
            param="dataset_path",
            fix='Expected a JSON list of {"conversations": [{"value": ...}, {"value": ...}]}.',
        ) from error
    rng.shuffle(pairs)
    usable: list[Prompt] = []
    for question, answer in pairs:
        if len(usable) == options.count:
            break
        wanted = options.output_len or len(tokenizer.encode(answer, add_special_tokens=False))
        prompt = _prompt(tokenizer, question, wanted)
        if len(prompt.token_ids) >= 4 and wanted >= 4 and len(prompt.token_ids) <= 1024 and len(prompt.token_ids) + wanted <= 2048:
            usable.append(prompt)
    if not usable:
        raise ConfigError(f"{options.path} has no usable conversation of 4 to 1024 tokens", param="dataset_path")
    # vLLM repeats what is there when more is asked for.
    return [usable[i % len(usable)] for i in range(options.count)]


def _read(options: DatasetOptions) -> str:
    if options.path is None:
        raise ConfigError(f"--dataset-name {options.name} needs a file", param="dataset_path", fix="Give --dataset-path FILE.")
    try:
        return Path(options.path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"The dataset {options.path} cannot be read: {error}", param="dataset_path") from error
