from __future__ import annotations

from pathlib import Path

import pytest

from headway.artifacts.licence import licence_of_folder, licence_of_gguf, require_acceptance
from headway.errors import ArtifactError


@pytest.mark.parametrize(
    ("readme", "licence"),
    [
        ("---\nlicense: apache-2.0\n---\ntext", "apache-2.0"),
        ("---\r\nlicense: mit\r\n---\r\n", "mit"),
        ("---\nlicense: other\nlicense_name: my-terms\n---\n", "my-terms"),
        ("---\nlicense: [a, b]\n---\n", None),
        ("---\nlicense: {unclosed\n---\n", None),
        ("---\nlicense: !!python/object/apply:os.system ['false']\n---\n", None),
        ("---\n- a\n---\n", None),
        ("---\nlicense: mit\n", None),
        ("# no front matter\nlicense: mit\n", None),
        ("", None),
    ],
)
def test_front_matter(tmp_path: Path, readme: str, licence: str | None) -> None:
    (tmp_path / "README.md").write_text(readme)
    assert licence_of_folder(tmp_path) == licence


def test_no_readme(tmp_path: Path) -> None:
    assert licence_of_folder(tmp_path) is None


def test_gguf_licence() -> None:
    assert licence_of_gguf({"general.license": "mit", "general.license.name": "x"}) == "mit"
    assert licence_of_gguf({"general.license.name": "x"}) == "x"
    assert licence_of_gguf({"general.license": 5}) is None


def test_acceptance() -> None:
    require_acceptance("m", "MIT", None, None, ())
    require_acceptance("m", "Terms", "word", "https://x.test", ("word",))
    with pytest.raises(ArtifactError, match="--accept-licence word") as caught:
        require_acceptance("m", "Terms", "word", "https://x.test", ("other",))
    assert caught.value.reason == "licence_not_accepted"
    assert "https://x.test" in caught.value.message
