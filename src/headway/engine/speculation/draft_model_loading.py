"""From the name of a draft model to a proposer: its card, its weights, its cache."""

from __future__ import annotations

import logging
import time
from dataclasses import dataclass

import torch

from headway.artifacts.card import ModelCard
from headway.artifacts.inspect import inspect
from headway.artifacts.tokenizer import Tokenizer, load_tokenizer
from headway.engine.compute_dtype import compute_dtype
from headway.engine.config import EngineConfig
from headway.engine.speculation.draft_model import DraftModelProposer
from headway.engine.speculation.settings import SpeculationSettings
from headway.errors import ConfigError
from headway.kernels.paged_kv import PagedKV
from headway.kvcache.block_pool import NULL_BLOCK
from headway.kvcache.manager import KVCacheManager
from headway.kvcache.runs import Run, forward_batch
from headway.models.load import load_model
from headway.models.recorded_forward import StepLimits

_log = logging.getLogger(__name__)
_REPEATS = 3


@dataclass(frozen=True, slots=True)
class LoadedDraftModel:
    """`positions`: the longest sequence that it can read."""

    proposer: DraftModelProposer
    positions: int


def load_draft_model(
    settings: SpeculationSettings, config: EngineConfig, tokenizer: Tokenizer, num_blocks: int, max_model_len: int
) -> LoadedDraftModel:
    """`tokenizer` is that of the served model, `num_blocks` and `max_model_len` are those of its cache; the draft model's has as many blocks.

    Raises ArtifactError, NotBuiltError, and ConfigError (`draft_vocabulary`) for a model with another vocabulary.
    """
    card = inspect(str(settings.model), revision=settings.revision, cache_dir=config.download_dir, accept_licence=config.accept_licence)
    check_vocabulary(card, load_tokenizer(card), tokenizer)
    dtype = compute_dtype(config.dtype, card)
    positions = min(max_model_len, card.context_length or max_model_len)
    model = load_model(card, dtype, context_length=positions)
    storage = PagedKV(num_blocks, config.block_size, model.config.kv_shape, dtype)
    manager = KVCacheManager(num_blocks, config.block_size, caching=config.enable_prefix_caching)
    forward = model.prepared(storage, StepLimits(config.max_num_batched_tokens, config.max_num_seqs, positions))
    known = min(tokenizer.vocab_size, model.config.vocab_size)
    proposer = DraftModelProposer(model, forward, storage, manager, known, config.max_num_batched_tokens)
    taken = []
    for _ in range(_REPEATS):
        start = time.perf_counter()
        with torch.inference_mode():
            model.logits(forward(forward_batch([Run([0], [NULL_BLOCK], 0, 1)], [0], config.block_size), storage)).argmax(-1)
        taken.append(time.perf_counter() - start)
    storage.clear([NULL_BLOCK])
    proposer.seconds_per_token = min(taken)
    _log.info("Draft model %s is loaded: KV cache %.2f GiB beside that of the served model, %.1f ms a token", settings.model, storage.nbytes / 2**30, min(taken) * 1e3)
    return LoadedDraftModel(proposer, positions)


def check_vocabulary(card: ModelCard, drafts: Tokenizer, served: Tokenizer) -> None:
    """A draft is a token id, so the same id must be the same token for both models. Raises ConfigError."""
    if drafts.vocab_size == served.vocab_size:
        odd = next((i for i in range(served.vocab_size) if drafts.token_name(i) != served.token_name(i)), None)
        if odd is None:
            return
        found = f"token {odd} is {drafts.token_name(odd)!r:.60} there and {served.token_name(odd)!r:.60} here"
    else:
        found = f"it has {drafts.vocab_size} tokens, the served model {served.vocab_size}"
    raise ConfigError(
        f"the draft model {card.path} has another vocabulary than the served model: {found}", reason="draft_vocabulary", param="spec_model",
        fix="Use a smaller model of the same family, or --spec-method ngram, which needs none.",
    )  # fmt: skip
