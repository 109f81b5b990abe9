from __future__ import annotations

from pathlib import Path

import pytest

from headway.artifacts.model_cards import card_of_path
from headway.artifacts.tokenizer import Tokenizer, load_tokenizer
from headway.runtime.decisions.label_logits.fixture import write_language_model


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("language_model") / "llama"
    write_language_model(path, "llama", 3)
    return path


@pytest.fixture(scope="session")
def tokenizer(folder: Path) -> Tokenizer:
    return load_tokenizer(card_of_path(folder, "tiny"))
