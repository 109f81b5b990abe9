"""The drafter of an engine that starts: settings -> proposer, limits, measured costs."""

from __future__ import annotations

import logging

from headway.artifacts.tokenizer import Tokenizer
from headway.engine.config import EngineConfig
from headway.engine.model_runner import ModelRunner
from headway.engine.sampler import Sampler
from headway.engine.speculation.draft_lengths import Costs
from headway.engine.speculation.draft_model_loading import load_draft_model
from headway.engine.speculation.drafter import Drafter, DraftLimits
from headway.engine.speculation.ngram import NgramProposer
from headway.engine.speculation.proposer import Proposer
from headway.engine.speculation.settings import SpeculationSettings
from headway.engine.speculation.step_cost import measure_steps
from headway.engine.speculation.suffix import SuffixProposer

_log = logging.getLogger(__name__)
_FEWEST_ROWS = 16  # of logits that a step may have however few sequences there are: some MB


def make_drafter(
    config: EngineConfig, runner: ModelRunner, sampler: Sampler, tokenizer: Tokenizer, max_model_len: int
) -> Drafter | None:
    """None when the configuration asks for no speculation. Measures what steps cost, which takes a few seconds at most. Raises what
    `load_draft_model` raises."""
    settings = config.speculation
    if settings is None:
        return None
    proposer, positions = _proposer(settings, config, runner, tokenizer, max_model_len)
    limits = DraftLimits(settings.num_speculative_tokens, max(config.max_num_seqs, _FEWEST_ROWS), positions)
    if not settings.adaptive:
        _log.info("Speculative decoding: %s, always %d drafts", settings.method, limits.drafts)
        return Drafter(proposer, limits, None)
    step = measure_steps(runner, sampler, min(config.max_num_batched_tokens, max_model_len))
    _log.info(
        "Speculative decoding: %s, up to %d drafts; milliseconds of a step by its tokens: %s", settings.method, limits.drafts,
        ", ".join(f"{n:.0f}: {s * 1e3:.1f}" for n, s in zip(step.tokens, step.seconds, strict=True)),
    )  # fmt: skip
    return Drafter(proposer, limits, Costs(step, proposer.seconds_per_token))


def _proposer(
    settings: SpeculationSettings, config: EngineConfig, runner: ModelRunner, tokenizer: Tokenizer, max_model_len: int
) -> tuple[Proposer, int]:
    """The proposer, and the longest sequence that it can read."""
    if settings.method == "draft_model":
        loaded = load_draft_model(settings, config, tokenizer, runner.kv.num_blocks, max_model_len)
        return loaded.proposer, loaded.positions
    if settings.method == "suffix":
        return SuffixProposer(settings), max_model_len
    return NgramProposer(settings.prompt_lookup_min, settings.prompt_lookup_max), max_model_len
