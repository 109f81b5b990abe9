"""The rules of loading: from a name to a model that stands in memory."""

from __future__ import annotations

from typing import Final

from headway.doctor.rules.loading import (
    access,
    architecture,
    context_length,
    device_build,
    disk,
    exit_code,
    extension,
    forked_cuda,
    model_name,
    no_gpu,
    slow_start,
    tensors,
    tokenizer,
    weight_files,
)
from headway.doctor.rules.rule import Rule

RULES: Final[tuple[Rule, ...]] = (
    *model_name.RULES,
    *access.RULES,
    *architecture.RULES,
    *tokenizer.RULES,
    *weight_files.RULES,
    *tensors.RULES,
    *extension.RULES,
    *device_build.RULES,
    *slow_start.RULES,
    *disk.RULES,
    *context_length.RULES,
    *exit_code.RULES,
    *no_gpu.RULES,
    *forked_cuda.RULES,
)
