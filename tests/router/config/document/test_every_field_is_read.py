"""A field that validates is one that something reads. What only describes stands in a table, and in the documentation."""

from __future__ import annotations

import importlib
import pkgutil
import re
from collections.abc import Iterator
from typing import Any, Literal, get_args, get_origin

import pytest

import headway.router.config.document as package
from headway.router.config.document.node import Node
from tests.docs.pages import ROOT

# For people and other tools.
DESCRIBES = {
    "ModelCard": {"display_name", "publisher", "presentation", "distribution", "family", "revision", "released_at", "knowledge_cutoff", "lifecycle", "modality", "tags"},
    "Modalities": {"output"},
    "ProviderPresentation": {"logo", "monogram", "monochrome"},
    "ModelDistribution": {"type", "source", "license"},
    "ModelRef": {"reasoning_description"},
    "LatencyAwareAlgorithm": {"description"},
    "Decision": {"description", "annotations"},
    "OperatingPointReference": {"path"},  # the model's card has the hash, which is compared
}
# There is one value, or every other one is refused.
ONE_VALUE = {
    "Document": {"version"}, "FallbackPolicy": {"version"}, "DecisionAction": {"type"}, "RouterSettings": {"config_source"}, "RateLimitProvider": {"type"},
    "StartupStatus": {"store_backend"}, "Services": {"startup_status"}, "VectorStore": {"backend_type"}, "RAGPlugin": {"backend"}, "MLMLP": {"device"},
    "KnowledgeBaseMetric": {"type"}, "ProjectionScore": {"method"}, "ProjectionMappingCalibration": {"method"}, "AdvancedToolFiltering": {"retrieval_strategy"},
    "ToolsPlugin": {"semantic_selection", "strategy"}, "ShadowDispatchPlugin": {"tls_skip_verify"}, "Admission": {"on_overflow"},
    "ModelDeployment": {"dtype"}, "_ModelModule": {"model_ref"}, "ContextCompressionTargets": {"memory"},
    # blocks that may stay while they are switched off, and cannot be switched on
    "Observability": {"tracing", "profiling"}, "Tracing": {"enabled", "provider", "exporter", "sampling", "resource"}, "Profiling": {"enabled", "port", "bind"},
    "ContextCompressionPlugin": {"recovery"},
    "ContextCompressionRecovery": {"enabled", "store", "ttl_seconds", "max_bytes_per_request", "max_total_bytes", "max_retrievals"},
}  # fmt: skip
# What they ask for is so anyway.
ALWAYS_SO = {"RouterSettings": {"clear_route_cache"}, "RateLimit": {"fail_open"}, "BackendRef": {"openai_compat_gateway"}}

for module in pkgutil.iter_modules(package.__path__):
    importlib.import_module(f"{package.__name__}.{module.name}")


def nodes(above: type[Node] = Node) -> Iterator[type[Node]]:
    for each in above.__subclasses__():
        yield each
        yield from nodes(each)


CLASSES = {each.__name__: each for each in nodes() if each.__module__.startswith(package.__name__)}
ROUTER = ROOT / "src/headway/router"
ELSEWHERE = [path.read_text() for path in ROUTER.rglob("*.py") if not path.is_relative_to(ROUTER / "config/document") and not path.is_relative_to(ROUTER / "config/migration")]
ELSEWHERE += [path.read_text() for part in ("cli", "compose") for path in (ROOT / "src/headway" / part).glob("*.py")]
WORDS = {word for text in ELSEWHERE for word in (*re.findall(r"\.(\w+)\b", text), *re.findall(r"[\"']([\w-]+)[\"']", text))}
# Properties and checks of a class are read from outside by other names.
OWN_USES = {name: set(re.findall(r"self\.(\w+)", (ROUTER / "config/document" / f"{each.__module__.split('.')[-1]}.py").read_text())) for name, each in CLASSES.items()}


@pytest.mark.parametrize("name", CLASSES)
def test_every_field_is_read_or_is_known_to_describe(name: str) -> None:
    own = set(CLASSES[name].__annotations__) & set(CLASSES[name].model_fields)
    quiet = DESCRIBES.get(name, set()) | ONE_VALUE.get(name, set()) | ALWAYS_SO.get(name, set()) | (
        {"cache_epoch", "model_revision", "prompt_revision", "policy_revision"} if name == "ResponseCacheRevision" else set()  # written into an identity as they are
    )  # fmt: skip
    assert {field for field in own - quiet if field not in WORDS and field not in OWN_USES[name]} == set()


@pytest.mark.parametrize("table", [DESCRIBES, ONE_VALUE, ALWAYS_SO])
def test_the_tables_name_fields_that_exist(table: dict[str, set[str]]) -> None:
    assert [f"{name}.{field}" for name, fields in table.items() for field in fields if field not in CLASSES[name].model_fields] == []


@pytest.mark.parametrize(
    ("name", "field"), [(name, field) for name, fields in DESCRIBES.items() for field in sorted(fields) if name not in ("ProviderPresentation", "ModelDistribution")]
)
def test_the_documentation_says_what_only_describes(name: str, field: str) -> None:
    (section,) = re.findall(r"^## Fields that only describe\n(.*?)(?=^## |\Z)", (ROOT / "docs/configuration.md").read_text(), re.MULTILINE | re.DOTALL)
    assert f"`{field}`" in section


def literals(annotation: Any) -> Iterator[tuple[Any, ...]]:
    if get_origin(annotation) is Literal:
        yield get_args(annotation)
    else:
        for each in get_args(annotation):
            yield from literals(each)


@pytest.mark.parametrize("name", CLASSES)
def test_no_choice_has_two_words_that_nothing_tells_apart(name: str) -> None:
    """Of the words of a choice at most one, that of the last branch, is named nowhere in the code."""
    for field in set(CLASSES[name].__annotations__) & set(CLASSES[name].model_fields):
        if field in DESCRIBES.get(name, ()) or field in ONE_VALUE.get(name, ()) or (name, field) == ("ConfidenceAlgorithm", "escalation_order"):
            continue  # size and small_to_large are two names of one order
        for words in literals(CLASSES[name].model_fields[field].annotation):
            unnamed = [word for word in words if isinstance(word, str) and word not in WORDS]
            assert len(unnamed) < 2, f"{name}.{field}: {unnamed}"
