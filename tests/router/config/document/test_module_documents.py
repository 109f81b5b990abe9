"""Modules of built-in signals: which keys they take."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from headway.router.config.document.algorithms import RouterDCSelection
from headway.router.config.document.modules import (
    CategoryModule,
    FactCheckModule,
    FeedbackDetectorModule,
    HallucinationDetector,
    PIIModule,
    PromptGuardModule,
)
from headway.router.config.document.router_settings import MLSelection
from headway.router.config.document.stores import Looper, RedisIndex

OWN = {
    PromptGuardModule: "prompt_guard", CategoryModule: "domain_classifier", PIIModule: "pii_classifier", FactCheckModule: "fact_check_classifier",
    HallucinationDetector: "hallucination_detector", FeedbackDetectorModule: "feedback_detector",
}  # fmt: skip


@pytest.mark.parametrize("module", OWN)
def test_a_module_may_name_its_own_model_and_no_other(module: type[Any]) -> None:
    assert module.model_validate({"model_ref": OWN[module]}).model_ref == OWN[module]
    with pytest.raises(ValidationError, match=rf"model_ref hazard is not supported by Headway: .*bindings.{OWN[module]}"):
        module.model_validate({"model_ref": "hazard"})


@pytest.mark.parametrize(
    ("document", "key"),
    [
        (RouterDCSelection, "dimension_size"), (RouterDCSelection, "use_query_contrastive"), (RouterDCSelection, "use_model_contrastive"),
        (MLSelection, "embedding_dim"), (MLSelection, "model_type"), (Looper, "max_response_bytes_mb"), (RedisIndex, "name"),
    ],
)  # fmt: skip
def test_a_key_without_effect_is_refused_with_advice(document: type[Any], key: str) -> None:
    assert key in document.absent
    with pytest.raises(ValidationError):
        document.model_validate({key: 1})
