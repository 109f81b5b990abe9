"""A recorded forward pass computes what transformers computes, whatever sizes its batches have."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

from headway.artifacts.inspect import inspect
from headway.kernels.native.backend import native_kernels
from headway.kernels.native.library import native_library
from headway.models.causal_lm import CausalLM
from headway.models.load import load_model
from headway.models.recorded_forward import RecordedForward, StepLimits
from tests.models.runs import LENGTH, Session, difference, tokens
from tests.models.tiny_models import CONFIGS, VARIANTS, TinyModel
from tests.models.tiny_sizes import SERVED

Tiny = Callable[[str], TinyModel]
ALL = [*CONFIGS, *VARIANTS]
# What chooses experts by what it computed runs kernel by kernel.
KERNEL_BY_KERNEL = {name for name in ALL if "moe" in name or "mixtral" in name}
LIMITS = StepLimits(tokens=LENGTH, sequences=4, positions=2 * LENGTH)

pytestmark = pytest.mark.skipif(not native_library().sets, reason=native_library().missing or "")


def native_model(tiny: Tiny, name: str, instruction_set: str | None = None, threads: int = 2) -> CausalLM:
    kernels = native_kernels(instruction_set or native_library().sets[0], threads)
    return load_model(inspect(str(tiny(name).folder)), torch.float32, context_length=SERVED, kernels=kernels)


def recorded_session(model: CausalLM, lengths: list[int], limits: StepLimits = LIMITS) -> Session:
    session = Session(model, lengths)
    session.forward = model.prepared(session.kv, limits)
    return session


@pytest.mark.parametrize("name", ALL)
def test_prefill_chunks_beside_decodes_equal_transformers(tiny: Tiny, name: str) -> None:
    model = native_model(tiny, name)
    texts = [tokens(seed) for seed in range(3)]
    session = recorded_session(model, [LENGTH] * 3)
    assert isinstance(session.forward, RecordedForward) is (name not in KERNEL_BY_KERNEL)
    done = [0, 0, 0]
    found: list[list[torch.Tensor]] = [[], [], []]
    for counts in ((70, 10, 0), (1, 30, 5), (1, 1, 60), (28, 58, 34), (0, 1, 1)):
        chunks = [(i, texts[i][: done[i] + count], count) for i, count in enumerate(counts) if count]
        for (i, _, count), logits in zip(chunks, session.step(*chunks), strict=True):
            found[i].append(logits)
            done[i] += count
    assert done == [LENGTH] * 3
    for i in range(3):
        assert difference(torch.cat(found[i]), tiny(name).logits(texts[i])) <= 1e-4


@pytest.mark.parametrize("instruction_set", native_library().sets)
@pytest.mark.parametrize("threads", [1, 2])
def test_the_program_gives_the_bits_of_its_kernels(tiny: Tiny, instruction_set: str, threads: int) -> None:
    model = native_model(tiny, "smollm", instruction_set, threads)
    text = tokens(1)
    plain, recorded = Session(model, [LENGTH]), recorded_session(model, [LENGTH])
    done = 0
    for new in (40, 1, 1, 25):
        done += new
        (one,), (other,) = plain.step((0, text[:done], new)), recorded.step((0, text[:done], new))
        assert torch.equal(one, other)


def test_batches_that_are_too_large_and_other_storage_run_kernel_by_kernel(tiny: Tiny) -> None:
    model, text = native_model(tiny, "smollm"), tokens(2)
    small = StepLimits(tokens=8, sequences=2, positions=2 * LENGTH)
    session = recorded_session(model, [LENGTH], small)
    (logits,) = session.step((0, text, LENGTH))
    assert difference(logits, tiny("smollm").logits(text)) <= 1e-4
    other = Session(model, [LENGTH])
    other.forward = session.forward
    (logits,) = other.step((0, text[:6], 6))
    assert difference(logits, tiny("smollm").logits(text)[:6]) <= 1e-4


def test_as_many_sequences_as_tokens(tiny: Tiny) -> None:
    """Sizes that are equal could be taken for each other."""
    model = native_model(tiny, "smollm")
    texts = [tokens(seed, 12) for seed in range(4)]
    session = recorded_session(model, [12] * 4, StepLimits(tokens=4, sequences=4, positions=40))
    for end in range(1, 13):
        rows = session.step(*[(i, texts[i][:end], 1) for i in range(4)])
    for i in range(4):
        assert difference(rows[i], tiny("smollm").logits(texts[i])[-1:]) <= 1e-4
