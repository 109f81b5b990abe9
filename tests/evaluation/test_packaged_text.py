from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import pytest

from headway.compression.calibration_text import packaged_texts
from headway.errors import ConfigError
from headway.evaluation.task_file import packaged_task
from headway.evaluation.texts import packaged_text, read_texts
from headway.evaluation.tokenized_text import byte_entropy

RUN = 6


def runs(words: list[str]) -> set[tuple[str, ...]]:
    return {tuple(words[i : i + RUN]) for i in range(len(words) - RUN + 1)}


def of_all(texts: Iterable[str]) -> set[tuple[str, ...]]:
    return {run for text in texts for run in runs(text.lower().split())}


def test_nothing_that_is_measured_was_used_to_quantize() -> None:
    """No six words in a row are in both."""
    calibration = of_all(packaged_texts())
    assert len(calibration) > 10_000
    assert not calibration & of_all([packaged_text().content])
    assert not calibration & of_all(question.question + " " + question.choices[question.answer] for question in packaged_task().questions)


def test_the_text_is_long_and_of_many_kinds() -> None:
    content = packaged_text().content
    assert 16_000 < len(content.encode()) < 64_000
    assert all(piece in content for piece in ("def ", "SELECT ", '"port"', "Wasser", "bibliothèque", "茶馆", "Question:"))
    assert 4 < byte_entropy(packaged_text()) < 6


@pytest.mark.parametrize(("content", "said"), [(None, "cannot be read"), (b"", "empty"), (b" \n", "empty"), (b"a\xff", "no UTF-8 text (byte 1)")])
def test_texts_that_cannot_be_used(tmp_path: Path, content: bytes | None, said: str) -> None:
    path = tmp_path / "t.txt"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(ConfigError) as refused:
        read_texts([path])
    assert said in refused.value.message
    assert refused.value.reason == "evaluation_text"
