"""In which moment of its life a program ran out of device memory."""

from __future__ import annotations

from typing import Final, Literal

from headway.doctor.case import Case
from headway.doctor.evidence.log.line import Hit
from headway.doctor.evidence.sight import Sight, sight
from headway.doctor.facts.allocator import OutOfMemory
from headway.doctor.facts.memory import KV_AVAILABLE, WEIGHTS

Moment = Literal["loading", "profiling", "cache", "sampler", "capture", "logprobs", "serving", "unknown"]

LOADING: Final = sight("Starting to load model", "checkpoint shards", "Load weight begin", "Loading drafter model")
CAPTURE: Final = sight(
    "Capturing CUDA graph", "Capturing cudagraph", "Capture cuda graph begin", "Capturing batches", "Capturing the model for CUDA graphs"
)
CAPTURED: Final = sight("Graph capturing finished", "Capture cuda graph end", "Capturing finished")
READY: Final = sight("Application startup complete", "The server is fired up", "router ready", "main: server is listening")
SAMPLER: Final = sight("warming up sampler", pattern=r"out of memory occurred when warming up sampler with (?P<requests>\d+) dummy requests")
# The frames and source lines of a traceback that tell the moment.
_PLACES: Final[dict[Moment, Sight]] = {
    "logprobs": sight("compute_logprobs", "log_softmax", "_get_prompt_logprobs", "gather_logprobs"),
    "sampler": sight("_dummy_sampler_run"),
    "capture": sight("in capture_model", "in _capture_cudagraphs", "torch.cuda.graph(", "Capture cuda graph failed"),
    "profiling": sight("in profile_run", "in determine_available_memory", "in determine_num_available_blocks", "in _dummy_run"),
    "cache": sight("in initialize_kv_cache", "in _allocate_kv_cache", "in allocate_kv_cache", "in initialize_from_config"),
    "loading": sight("in create_weights", "in load_model", "in load_weights", "in initialize_model", "in process_weights_after_loading"),
    "serving": sight("in execute_model", "in step_fn", "in forward_batch_generation"),
}
PROMPT_SCORED: Final = sight("prompt_logprobs=", '"prompt_logprobs"', "echo=True", pattern=r"prompt_logprobs[\"']?[=:] ?\d|echo=True")
PROMPT_LENGTH: Final = sight("prompt_token_ids: ", pattern=r"prompt_token_ids: (?P<tokens>\d+) tokens")
SIGHTS: Final = (LOADING, PROMPT_SCORED, PROMPT_LENGTH, CAPTURE, CAPTURED, READY, SAMPLER, *_PLACES.values())
_TRACEBACK_LINES: Final = 90
_SAME_MOMENT: Final = 20


def moment_of(case: Case, oom: OutOfMemory) -> Moment:
    """By the traceback above the message, and by what the same process, or the server, had reported before it."""
    places = {name for name, seen in _PLACES.items() if any(_above(hit, oom.hit) for hit in case.log.hits(seen))}
    if "logprobs" in places:
        return "logprobs"
    if "sampler" in places or any(0 <= hit.line.number - oom.hit.line.number <= _TRACEBACK_LINES for hit in case.log.hits(SAMPLER)):
        return "sampler"
    if _last(case, oom, READY) > _last(case, oom, LOADING):
        return "logprobs" if _is_a_scored_prompt(case, oom) else "serving"
    if "capture" in places or (oom.pools or 0) > 0 or _last(case, oom, CAPTURE) > _last(case, oom, CAPTURED, LOADING):
        return "capture"
    for name in ("cache", "profiling", "loading"):
        if name in places:
            return name
    weights, loading = _last(case, oom, WEIGHTS, own=True), _last(case, oom, LOADING)
    if loading and not weights:
        return "loading"
    if weights:
        return "cache" if _last(case, oom, KV_AVAILABLE, own=True) else "profiling"
    return "serving" if "serving" in places else "unknown"


def _is_a_scored_prompt(case: Case, oom: OutOfMemory) -> bool:
    """A request for log-probabilities came right before, and what was asked for is its tokens x vocabulary x 4 bytes."""
    near = [line for line in (_last(case, oom, PROMPT_SCORED), _last(case, oom, PROMPT_LENGTH)) if 0 < oom.hit.line.number - line <= _SAME_MOMENT]
    vocabulary = case.model.config.get("vocab_size")
    if len(near) < 2 or oom.asked is None or not isinstance(vocabulary, int):
        return False
    tokens = next(hit.number("tokens") for hit in reversed(case.log.hits(PROMPT_LENGTH)) if hit.line.number < oom.hit.line.number)
    return 0.8 <= oom.asked / (tokens * vocabulary * 4 / 2**30 or 1.0) <= 1.25


def _above(hit: Hit, message: Hit) -> bool:
    """In the traceback that ends with `message`."""
    same = hit.line.source == message.line.source and hit.line.process == message.line.process
    return same and 0 <= message.line.number - hit.line.number <= _TRACEBACK_LINES


def _last(case: Case, oom: OutOfMemory, *sights: Sight, own: bool = False) -> int:
    """The line of the last of these before the message, 0 when there is none; `own`: by the same process."""
    line = oom.hit.line
    numbers = [
        hit.line.number
        for hit in case.log.hits(*sights)
        if hit.line.source == line.source and hit.line.number < line.number and not (own and line.process and hit.line.process != line.process)
    ]
    return max(numbers, default=0)
