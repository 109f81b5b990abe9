"""evaluate: a model, alone or against its baseline -> an Evaluation. One model is in memory at a time."""

from __future__ import annotations

import gc
import math
from dataclasses import replace
from typing import Any, Final

from headway.errors import HeadwayError
from headway.evaluation.baseline import Baseline, baseline_of, evaluation_cache
from headway.evaluation.baseline_cache import BaselineCache
from headway.evaluation.diagnosis.cause import likely_cause
from headway.evaluation.diagnosis.other_settings import Probe
from headway.evaluation.evaluation import Evaluation, alone, compared, verdict
from headway.evaluation.judgement import Decision
from headway.evaluation.measurement import Measurement, measure, measure_remote, measured_baseline
from headway.evaluation.measuring import NotNumbersError
from headway.evaluation.remote import RemoteModel
from headway.evaluation.request import EvaluationRequest
from headway.evaluation.scoring import Progress, ScoringRequest
from headway.evaluation.subject import Subject, find_subject
from headway.evaluation.text_results import Perplexity, perplexity
from headway.evaluation.tokenized_text import byte_entropy
from headway.evaluation.vocabulary import Vocabulary, remote_vocabulary, subject_vocabulary
from headway.evaluation.work import Material, Work, work_of
from headway.host.heap import release_free_memory

# What is wrong with a file, not with the question; the model fails.
DAMAGED: Final = frozenset(
    {
        "gguf_metadata", "hash_mismatch", "header_json", "header_length", "index_invalid", "invalid_model_config", "invalid_quantization",
        "missing_shards", "missing_tensor", "packed_dtype", "packed_part_missing", "packed_shape", "packed_values", "quantization_mismatch",
        "tensor_not_in_shard", "tensor_shape", "tensor_size", "tensor_twice", "truncated", "unexpected_tensor", "weights_unreadable",
    }
)  # fmt: skip
_PROBE_TOKENS: Final = 512


def evaluate(model: str, request: EvaluationRequest, progress: Progress = lambda stage, done: None) -> Evaluation:
    """Raises HeadwayError when nothing can be said: no such model, no memory, a baseline that cannot be read."""
    try:
        subject = find_subject(model, request, progress)
    except HeadwayError as error:
        if error.reason not in DAMAGED:
            raise
        return Evaluation(model, request.against, "fail", request.settings(None, request.width), problem=error.message)
    vocabulary = subject_vocabulary(subject)
    material = _material(request, vocabulary)
    work = work_of(material, vocabulary)
    settings = request.settings(str(subject.dtype).removeprefix("torch."), material.width)
    with evaluation_cache(request.keep) as cache:
        counted = _Counted(progress, work.tokens)
        base = _baseline(request, material, cache, progress, counted, hidden=True)
        base_subject = None if base is None else base.subject
        counted.stage = f"asking {model}"
        try:
            measured = measure(subject, work, base, progress, counted.add)
        except HeadwayError as error:
            if error.reason not in DAMAGED and not isinstance(error, NotNumbersError):
                raise
            cause = likely_cause(subject, base_subject, _probe(work, None), progress)
            return Evaluation(model, request.against, "fail", settings, problem=error.message, cause=cause)
        _let_go()
        found = judged(model, request, settings, measured, base)
        return found if found.decision != "fail" else _explained(found, subject, base_subject, work, progress)


def evaluate_server(
    url: str, model: str | None, tokenizer: str | None, api_key: str | None, request: EvaluationRequest, progress: Progress = lambda stage, done: None
) -> Evaluation:
    """A server that speaks the API of OpenAI and scores prompts. Texts become tokens by the tokenizer of the model `tokenizer`, else by the
    server's. Raises HeadwayError as `evaluate`, and where the server does not answer as it must."""
    with RemoteModel(url, model, api_key) as remote:
        subject = None if tokenizer is None else find_subject(tokenizer, request, progress)
        vocabulary = remote_vocabulary(remote, subject, request.max_length)
        material = _material(request, vocabulary)
        work = work_of(material, vocabulary)
        name, settings = f"{remote.name} at {remote.url}", request.settings(None, material.width)
        with evaluation_cache(request.keep) as cache:
            counted = _Counted(progress, work.tokens)
            base = _baseline(request, material, cache, progress, counted, hidden=False)
            counted.stage = f"asking {name}"
            try:
                measured = measure_remote(remote, work, counted.add)
            except NotNumbersError as error:
                return Evaluation(name, request.against, "fail", settings, problem=error.message)
            return judged(name, request, settings, measured, base)


def judged(model: str, request: EvaluationRequest, settings: dict[str, Any], measured: Measurement, base: Baseline | None) -> Evaluation:
    if base is None:
        return Evaluation(model, None, alone(measured), settings, measured)
    against = measured_baseline(base)
    comparison = compared(measured, against, request.threshold, _missing(measured, base))
    decision: Decision = verdict(comparison, _perplexity(measured))
    return Evaluation(model, request.against, decision, settings, measured, against, base.kept, comparison)


class _Counted:
    """Progress by tokens."""

    def __init__(self, progress: Progress, total: int):
        self.stage, self.total = "", max(total, 1)
        self._progress, self._done = progress, 0

    def add(self, tokens: int) -> None:
        self._done += tokens
        self._progress(self.stage, self._done / self.total)


def _baseline(request: EvaluationRequest, material: Material, cache: BaselineCache, progress: Progress, counted: _Counted, *, hidden: bool) -> Baseline | None:
    """Nothing but its results is in memory afterwards."""
    if request.against is None:
        return None
    subject = find_subject(request.against, request, progress)
    work = work_of(material, subject_vocabulary(subject))
    counted.stage, counted.total = f"asking {request.against}", counted.total + work.tokens
    try:
        return baseline_of(subject, work, cache, progress, counted.add, hidden=hidden)
    except NotNumbersError as error:
        raise HeadwayError(
            f"nothing can be measured against {request.against}: {error.message}", reason="not_numbers", param="against", fix="Choose another baseline."
        ) from None
    finally:
        _let_go()


def _material(request: EvaluationRequest, vocabulary: Vocabulary) -> Material:
    width = min(request.width, vocabulary.longest)
    material = Material(request.texts, request.tasks, width, min(request.stride or width // 2, width))
    return material if request.limit is None else material.limited(request.limit, vocabulary)


def _explained(found: Evaluation, subject: Subject, base: Subject | None, work: Work, progress: Progress) -> Evaluation:
    own = None if found.measured is None else _perplexity(found.measured)
    probe = _probe(work, found.measured)
    cause = likely_cause(subject, base, probe, progress)
    problem = f"it writes worse than byte frequencies do ({own.bits_per_byte:.2f} bits a byte, {own.entropy:.2f} by frequencies)" if own and own.senseless else None
    return replace(found, problem=problem, cause=cause)


def _probe(work: Work, measured: Measurement | None) -> Probe | None:
    """The beginning of the first text."""
    if not work.texts:
        return None
    text = work.texts[0]
    first = text.requests[0]
    cut = ScoringRequest(first.tokens[:_PROBE_TOKENS], first.start)
    # Bits that the bytes of the text would take by frequencies alone, in nats for each of its tokens.
    most = byte_entropy(text.text.text) * math.log(2) * text.text.nbytes / len(text.text.ids)
    found = None if measured is None else -float(measured.texts[0].logprobs[: len(cut.targets)].mean())
    return Probe((cut,), most, found)


def _perplexity(measured: Measurement) -> Perplexity | None:
    return perplexity(measured.texts) if measured.texts else None


def _missing(measured: Measurement, base: Baseline) -> str | None:
    if not measured.texts:
        return "no text was read"
    if any(record.width == 0 for record in base.texts):
        return "a server does not give whole distributions"
    return "the two models have different tokenizers"


def _let_go() -> None:
    gc.collect()
    release_free_memory()

