"""What packages of the Decision and Vela families are refused for, before a weight is read."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from headway.artifacts.resumable_download import file_sha256
from headway.errors import PackageError
from headway.runtime.family import ModelFamily, Placement
from headway.runtime.package import Package
from headway.runtime.readers.decision1.family import Decision1Family
from headway.runtime.readers.decision2.family import Decision2Family
from headway.runtime.readers.decision3.family import Decision3Family
from headway.runtime.readers.part_card import card_of_part
from headway.runtime.readers.vela2.family import Vela2Family

FAMILIES: dict[str, ModelFamily] = {family.name: family for family in (Decision1Family(), Decision2Family(), Decision3Family(), Vela2Family())}
CASES = [(name, variant) for name, family in FAMILIES.items() for variant in family.fixture_variants()]
Change = Callable[[dict[str, Any]], Any]


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("packages")
    for name, variant in CASES:
        FAMILIES[name].write_fixture(root / f"{name}-{variant}", variant, 3)
    return root


@pytest.fixture
def root(written: Path, tmp_path: Path) -> Path:
    """A copy that may be damaged."""
    return Path(shutil.copytree(written, tmp_path / "packages"))


def package_of(path: Path) -> Package:
    return Package(str(path), path)


def verify(family: ModelFamily, path: Path) -> Any:
    package = package_of(path)
    return family.verify(package, {name: file_sha256(path / name) for name in family.describe(package).files})


def change(path: Path, edit: Change) -> None:
    value = json.loads(path.read_text())
    edit(value)
    path.write_text(json.dumps(value))


@pytest.mark.parametrize(("name", "variant"), CASES)
def test_each_family_knows_its_own(written: Path, name: str, variant: str) -> None:
    found = [other for other, family in FAMILIES.items() if family.detect(package_of(written / f"{name}-{variant}"))]
    assert found == [name]


def test_foreign_folders_are_nobodys(tmp_path: Path) -> None:
    for content in ("{", "[]", "{}", '{"model_type": "bert"}', '{"decision_format": "vllm-sr-decision", "format_version": 9}'):
        (tmp_path / "config.json").write_text(content)
        assert not any(family.detect(package_of(tmp_path)) for family in FAMILIES.values())


@pytest.mark.parametrize(("name", "variant"), CASES)
def test_fixtures_are_the_same_every_time(written: Path, tmp_path: Path, name: str, variant: str) -> None:
    FAMILIES[name].write_fixture(tmp_path / f"{name}-{variant}", variant, 3)
    again = {path.name: file_sha256(path) for path in (tmp_path / f"{name}-{variant}").rglob("*") if path.is_file()}
    assert again == {path.name: file_sha256(path) for path in (written / f"{name}-{variant}").rglob("*") if path.is_file()}


@pytest.mark.parametrize(("name", "variant"), CASES)
def test_the_identity_changes_with_the_weights(written: Path, root: Path, name: str, variant: str) -> None:
    path = root / f"{name}-{variant}"
    before = verify(FAMILIES[name], path)
    assert before == verify(FAMILIES[name], written / f"{name}-{variant}")
    weights = max(path.rglob("*.safetensors"), key=lambda file: file.stat().st_size)
    data = bytearray(weights.read_bytes())
    data[-1] ^= 1
    weights.write_bytes(bytes(data))
    try:
        after = verify(FAMILIES[name], path)
    except PackageError as error:
        assert "a file hash does not match" in error.message  # noqa: PT017
        assert error.reason == "hash_mismatch"  # noqa: PT017
    else:
        assert (name, variant) in (("decision1", "qwen3.5-decision"), ("vela2", "encoder"))  # these record nothing of themselves
        assert after.model_sha256 != before.model_sha256


UNPUBLISHED: list[tuple[str, str, Change]] = [
    ("decision1-vela-encoder", "config.json", lambda c: c.update(runtime_family="vela-slots")),
    ("decision1-vela-encoder", "native/decision_config.json", lambda c: c.update(arm="half")),
    ("decision1-qwen3.5-decision", "decision_config.json", lambda c: c.update(prompt_version="v1")),
    ("decision2-qwen3", "MODEL_MANIFEST.json", lambda c: c.update(profile="kai-native")),
    ("decision2-qwen3", "MODEL_MANIFEST.json", lambda c: c.update(profile="encoder-marker")),
    ("decision2-qwen3", "decision_config.json", lambda c: c.update(head_variant="type-separated")),
    ("decision2-qwen3", "decision_config.json", lambda c: c.update(readout="label_token")),
    ("decision2-qwen3", "decision_config.json", lambda c: c.update(architecture="qwen3-text-candidate-interaction")),
    ("decision3-causal", "decision_config.json", lambda c: c.update(prompt="d4")),
    ("vela2-encoder", "config.json", lambda c: c.update(format_version=2)),
    ("vela2-encoder", "config.json", lambda c: c.update(readout="slots")),
]


@pytest.mark.parametrize(("folder", "file", "edit"), UNPUBLISHED)
def test_layouts_that_nobody_published_are_refused(root: Path, folder: str, file: str, edit: Change) -> None:
    family = FAMILIES[folder.split("-")[0]]
    change(root / folder / file, edit)
    for size in (root / folder).glob("MODEL_MANIFEST.json"):
        change(size, lambda c: c.pop("files_bytes", None))
    assert family.detect(package_of(root / folder))
    with pytest.raises(PackageError, match=r"^layout not published: ") as error:
        family.describe(package_of(root / folder))
    assert error.value.reason == "layout_not_published"


INVALID: list[tuple[str, str, Change]] = [
    ("decision1-vela-encoder", "config.json", lambda c: c.pop("backbone")),
    ("decision1-vela-encoder", "config.json", lambda c: c["backbone"].update(config="../config.json")),
    ("decision1-vela-encoder", "config.json", lambda c: c.update(calibration={"temperature": 1})),
    ("decision1-vela-encoder", "QUESTIONS.json", lambda c: c.update(odd={"type": "Score"})),
    ("decision1-qwen3.5-decision", "temperature.json", lambda c: c["temperatures"].update(noul=0)),
    ("decision1-qwen3.5-decision", "config.json", lambda c: c["decision_weights"].update(more="x")),
    ("decision2-qwen3", "MODEL_MANIFEST.json", lambda c: c.update(schema="other/1")),
    ("decision2-qwen3", "MODEL_MANIFEST.json", lambda c: c.update(max_input_tokens=8)),
    ("decision2-qwen3", "MODEL_MANIFEST.json", lambda c: c["parameters"].update(loaded=1)),
    ("decision2-qwen3", "MODEL_MANIFEST.json", lambda c: c["calibration"].update(file="../calibration.json")),
    ("decision2-qwen3", "decision_config.json", lambda c: c.update(head_dim=0)),
    ("decision3-causal", "decision_config.json", lambda c: c.update(temperature=-1)),
    ("decision3-causal", "decision_config.json", lambda c: c["codes"].pop()),
    ("decision3-causal", "decision_config.json", lambda c: c.update(attention_mode="some")),
    ("decision3-causal", "config.json", lambda c: c.update(model_type="qwen2")),
    ("decision3-causal", "MODEL_MANIFEST.json", lambda c: c["parameters"].update(vision=0)),
    ("vela2-encoder", "config.json", lambda c: c.update(max_length=8)),
    ("vela2-encoder", "calibration.json", lambda c: c["temperature"].update(span=0)),
    ("vela2-encoder", "calibration.json", lambda c: c["thresholds"].update({"set:*": 2})),
    ("vela2-encoder", "calibration.json", lambda c: c["pii_length_rule"]["anchors"].reverse()),
    ("vela2-decoder", "calibration.json", lambda c: c["broad_head"].pop("temperature")),
]


@pytest.mark.parametrize(("folder", "file", "edit"), INVALID)
def test_packages_against_their_format_are_refused(root: Path, folder: str, file: str, edit: Change) -> None:
    family = FAMILIES[folder.split("-")[0]]
    change(root / folder / file, edit)
    for manifest in (root / folder).glob("MODEL_MANIFEST.json"):
        change(manifest, lambda c: c.pop("files_bytes", None))
    with pytest.raises(PackageError) as error:
        family.describe(package_of(root / folder))
    assert error.value.reason == "invalid_package"
    assert "expected" in error.value.message or "needs" in error.value.message


@pytest.mark.parametrize(("name", "variant"), [case for case in CASES if case != ("decision2", "qwen3.5-adapter")])
def test_tensors_that_are_missing_or_odd_are_refused(root: Path, name: str, variant: str) -> None:
    from safetensors.torch import load_file, save_file

    path = root / f"{name}-{variant}"
    heads = next(path.rglob("*head*.safetensors"), None) or next(path.rglob("readout.safetensors"), None) or path / "model.safetensors"
    tensors = load_file(heads)
    dropped = sorted(name for name in tensors if not name.startswith("encoder."))[0]
    save_file({key: value for key, value in tensors.items() if key != dropped}, heads)
    with pytest.raises(PackageError) as error:
        load(FAMILIES[name], path)
    assert error.value.reason in ("missing_tensor", "hash_mismatch", "invalid_package")


def load(family: ModelFamily, path: Path) -> Any:
    package = package_of(path)
    return family.load(package, family.describe(package), Placement("cpu", "float32", False), lambda done, total: None)


def load_adapter(path: Path, base: str | None) -> Any:
    family, package = FAMILIES["decision2"], package_of(path)
    options = {} if base is None else {"base_path": base}
    return family.load(package, family.describe(package), Placement("cpu", "float32", False, options), lambda done, total: None)


def test_an_adapter_needs_exactly_its_base(root: Path) -> None:
    path, base = root / "decision2-qwen3.5-adapter", root / "decision2-qwen3.5-adapter-base"
    with pytest.raises(PackageError, match="--base-path") as error:
        load_adapter(path, None)
    assert error.value.reason == "base_missing"
    with pytest.raises(PackageError, match=r"lacks config\.json"):
        load_adapter(path, str(path / "adapter"))
    load_adapter(path, str(base))
    weights = base / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-1] + b"\0")
    with pytest.raises(PackageError, match="a file hash does not match"):
        load_adapter(path, str(base))


def test_sums_cover_settings_too(root: Path) -> None:
    path = root / "vela2-decoder"
    change(path / "calibration.json", lambda c: c["temperature"].update(span=0.7))
    with pytest.raises(PackageError, match=r"a file hash does not match: calibration\.json .* SHA256SUMS"):
        verify(FAMILIES["vela2"], path)


def test_a_file_too_many_or_too_few_in_an_exact_package(root: Path) -> None:
    path = root / "decision2-qwen3"
    (path / "extra.py").write_text("print()")
    with pytest.raises(PackageError, match=r"holds extra\.py"):
        FAMILIES["decision2"].describe(package_of(path))
    (path / "extra.py").unlink()
    (path / "tokenizer.json").unlink()
    with pytest.raises(PackageError, match=r"lacks tokenizer\.json"):
        FAMILIES["decision2"].describe(package_of(path))


def test_a_chat_template_of_another_form_is_refused(root: Path) -> None:
    path = root / "decision3-causal"
    (path / "chat_template.jinja").write_text("{% for m in messages %}{{ m.content }}{% endfor %}")
    change(path / "MODEL_MANIFEST.json", lambda c: c.pop("files_bytes"))
    with pytest.raises(PackageError, match="layout not published: prompts of the form"):
        load(FAMILIES["decision3"], path)


def test_codes_must_be_tokens(root: Path) -> None:
    path = root / "decision3-causal"
    change(path / "decision_config.json", lambda c: c["codes"].__setitem__(0, "two words"))
    change(path / "MODEL_MANIFEST.json", lambda c: c.pop("files_bytes"))
    with pytest.raises(PackageError, match="'two words' is the token"):
        load(FAMILIES["decision3"], path)


@pytest.mark.parametrize("named", [None, "BertModel", [], 5, {"a": 1}, [["x"]]])
def test_odd_architectures_of_a_part_are_no_crash(named: Any, tmp_path: Path) -> None:
    card = card_of_part("part", {"architectures": named, "model_type": "bert"}, {}, [tmp_path / "model.safetensors"])
    assert isinstance(card.architecture, str)
    assert card.model_type == "bert"
