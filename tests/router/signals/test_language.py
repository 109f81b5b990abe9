"""The language signal: with lid-176 where it is there, and with lingua."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from headway.artifacts.cache_folders import headway_cache
from headway.artifacts.registry import registry
from headway.artifacts.registry_fetch import fetch
from headway.router.config.document.text_signals import LanguageRule
from headway.router.request.view import RequestView
from headway.router.signals.language.detectors import FastTextDetector, LinguaDetector, language_detector
from headway.router.signals.language.kind import LanguageRules
from headway.router.truth import Truth
from tests.router.routed import route, signals_of

TEXTS = {
    "en": "Could you please explain how the weather will be in the northern part of the country tomorrow?",
    "es": "¿Podrías explicarme cómo estará el tiempo mañana en la parte norte del país?",
    "zh": "请告诉我明天北方的天气怎么样，需要带伞吗？",
    "ru": "Объясни, пожалуйста, какая завтра будет погода на севере страны?",
}


class Says:
    name = "scripted"

    def __init__(self, **found: float) -> None:
        self.found = found
        self.texts: list[str] = []

    def detect(self, text: str) -> Mapping[str, float]:
        self.texts.append(text)
        return self.found


def view(text: str) -> RequestView:
    return RequestView({"messages": [{"role": "user", "content": text}]})


@pytest.mark.parametrize("language", TEXTS)
def test_languages_without_a_download(language: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEADWAY_CACHE", str(tmp_path))
    assert isinstance(language_detector(), LinguaDetector)
    found = route(signals_of("language", "language", [{"name": each} for each in TEXTS]), TEXTS[language])
    assert {name for name in TEXTS if found[f"language:{name}"].truth is Truth.TRUE} == {language}
    assert found[f"language:{language}"].evidence == {"detector": "lingua", "language": language}


@pytest.mark.e2e
@pytest.mark.parametrize("language", TEXTS)
def test_languages_with_the_fetched_model(language: str) -> None:
    fetch(registry()["lid-176"], headway_cache())
    assert isinstance(language_detector(), FastTextDetector)
    found = route(signals_of("language", "language", [{"name": each} for each in TEXTS]), TEXTS[language] + "\n")
    assert {name for name in TEXTS if found[f"language:{name}"].truth is Truth.TRUE} == {language}
    assert found[f"language:{language}"].evidence == {"detector": "lid-176", "language": language}
    assert 0.5 < (found[f"language:{language}"].confidence or 0) <= 1


def test_a_model_that_was_changed_is_not_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEADWAY_CACHE", str(tmp_path))
    folder = tmp_path / "models" / registry()["lid-176"].name
    folder.mkdir(parents=True)
    (folder / "lid.176.ftz").write_bytes(b"not the model")
    assert isinstance(language_detector(), LinguaDetector)


def test_the_best_language_holds_from_its_threshold_on() -> None:
    rules = [LanguageRule(name="en"), LanguageRule(name="es", threshold=0.2), LanguageRule(name="pt-BR", threshold=0.9)]
    for found, wanted in (
        ({"en": 0.3, "es": 0.25}, {"en"}),
        ({"en": 0.29, "es": 0.25}, set()),
        ({"es": 0.25, "en": 0.2}, {"es"}),
        ({"pt": 0.9}, {"pt-BR"}),
        ({"pt": 0.89}, set()),
        ({}, set()),
    ):
        seen = LanguageRules(rules, Says(**found)).observe(view("some words"))
        assert {each.name for each in seen if each.truth is Truth.TRUE} == wanted
        for each in seen:
            assert each.confidence == (each.value if each.truth is Truth.TRUE else None)


def test_one_look_of_bounded_length_for_all_rules() -> None:
    detector = Says(en=0.9)
    rules = LanguageRules([LanguageRule(name="en"), LanguageRule(name="es")], detector)
    rules.observe(view("word " * 10_000))
    assert [len(text) for text in detector.texts] == [4096]
    rules.observe(view("123 !?"))
    assert len(detector.texts) == 1  # nothing to tell a language by
