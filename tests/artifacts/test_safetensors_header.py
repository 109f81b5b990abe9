from __future__ import annotations

import json
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save_file

from headway.artifacts.safetensors_header import SafetensorsHeader, read_safetensors_header
from headway.errors import ArtifactError
from tests.artifacts.model_files import llama_tensors, safetensors_bytes

VALID = safetensors_bytes()


def test_header_agrees_with_the_safetensors_package(tmp_path: Path) -> None:
    path = tmp_path / "m.safetensors"
    tensors = {
        **llama_tensors(),
        "empty": np.zeros((0, 4), np.int64),
        "scalar": np.array(3.5, np.float64),
        "flag": np.ones(3, bool),
    }
    save_file(tensors, path, metadata={"format": "pt"})
    header, content = read_safetensors_header(path), path.read_bytes()
    assert header.tensors.keys() == tensors.keys()
    assert header.metadata == {"format": "pt"}
    for name, array in tensors.items():
        info = header.tensors[name]
        assert (info.shape, info.nbytes, info.file) == (array.shape, array.nbytes, path)
        assert content[info.offset : info.offset + info.nbytes] == array.tobytes()


def _file(header: Any, data: bytes = b"") -> bytes:
    raw = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(raw)) + raw + data


def _entry(dtype: Any = "F32", shape: Any = (2,), offsets: Any = (0, 8)) -> dict[str, Any]:
    return {"dtype": dtype, "shape": shape, "data_offsets": offsets}


LFS = b"version https://git-lfs\noid sha256:%064d\nsize 9876543210\n" % 0


@pytest.mark.parametrize(
    ("content", "reason", "says"),
    [
        (LFS, "lfs_pointer", "9876543210"),
        (b"<!DOCTYPE html><html>login</html>", "html_page", "HTML"),
        (b"\n <!DOCTYPE html><html>login</html>", "html_page", "HTML"),
        (b'{"error":"Invalid username or password."}', "error_answer", "JSON"),
        (VALID[:-5], "truncated", "5 bytes are missing"),
        (VALID + b"abcd", "trailing_bytes", "4 bytes follow"),
        (VALID[:20], "truncated", "inside its header"),
        (b"", "empty_file", "empty"),
        (b"abc", "truncated", "needs 8 bytes"),
        (bytes(64), "zeros", "zeros"),
        (_file({"a": _entry(shape=[3])}, bytes(8)), "tensor_entry", "needs 12 bytes, its offsets give it 8"),
        (_file({"a": _entry(), "b": _entry(offsets=[12, 20])}, bytes(20)), "tensor_gap", "gap before it of 4"),
        (_file({"a": _entry(), "b": _entry(offsets=[4, 12])}, bytes(12)), "tensor_gap", "overlaps"),
        (_file({"a": _entry(dtype="Q9")}, bytes(8)), "unknown_dtype", "Q9"),
        (_file({"a": _entry(dtype=["F32"])}, bytes(8)), "unknown_dtype", "F32"),
        (_file({"a": _entry(shape=[-2])}, bytes(8)), "tensor_entry", "shape"),
        (_file({"a": _entry(shape=[True, 2])}, bytes(8)), "tensor_entry", "shape"),
        (_file({"a": _entry(offsets=[8, 0])}, bytes(8)), "tensor_entry", "data_offsets"),
        (_file({"a": _entry(shape=[1] * 40)}, bytes(8)), "tensor_entry", "shape"),
        (_file({"a": {"dtype": "F32"}}, bytes(8)), "tensor_entry", "must have"),
        (_file({"__metadata__": {"a": 1}}), "header_json", "strings"),
        (_file(b'{"a":1,"a":2}'), "header_json", "twice"),
        (_file(b'{"a":NaN}'), "header_json", "NaN"),
        (_file(b"{broken"), "header_json", "JSON"),
        (_file(b'{"a":' + b"[" * 100_000), "header_json", "JSON"),
        (_file(b'{"a":' + b"9" * 10_000 + b"}"), "header_json", "JSON"),
        (_file(b'{"\xff":1}'), "header_json", "JSON"),
        (_file(b"[]"), "header_json", "starts with"),
        (struct.pack("<Q", 1 << 62) + b"{" + bytes(64), "header_length", "limit"),
        (struct.pack("<Q", 100_000_001) + b"{" + bytes(64), "header_length", "100000001"),
    ],
)  # fmt: skip
def test_each_damage_has_its_own_reason_and_numbers(tmp_path: Path, content: bytes, reason: str, says: str) -> None:
    path = tmp_path / "model.safetensors"
    path.write_bytes(content)
    with pytest.raises(ArtifactError) as caught:
        read_safetensors_header(path)
    assert (caught.value.reason, says in caught.value.message) == (reason, True), caught.value.message
    assert str(path) in caught.value.message


def test_a_directory_is_not_a_file(tmp_path: Path) -> None:
    (tmp_path / "model.safetensors").mkdir()
    with pytest.raises(ArtifactError) as caught:
        read_safetensors_header(tmp_path / "model.safetensors")
    assert caught.value.reason == "is_directory"


def _ours(path: Path) -> SafetensorsHeader | None:
    try:
        return read_safetensors_header(path)
    except ArtifactError:
        return None


def _theirs_accepts(path: Path) -> bool:
    try:
        with safe_open(path, "np") as file:
            return file.keys() is not None
    except (SafetensorError, OSError, ValueError):
        return False


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(body=st.binary(max_size=300), length=st.one_of(st.none(), st.integers(0, 310)))
def test_random_bytes_give_a_header_or_an_artifact_error(tmp_path: Path, body: bytes, length: int | None) -> None:
    path = tmp_path / "fuzz.safetensors"
    path.write_bytes(body if length is None else struct.pack("<Q", length) + b"{" + body)
    assert _ours(path) is None or _theirs_accepts(path)


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_what_we_accept_the_library_accepts_too(tmp_path: Path, data: st.DataObject) -> None:
    """Mutations inside the header and cuts at the end; never another exception, never more lenient than the library."""
    content = bytearray(VALID)
    for _ in range(data.draw(st.integers(0, 3))):
        at = data.draw(st.integers(0, 500))
        content[at : at + 1] = data.draw(
            st.sampled_from([b"0", b"9", b'"', b",", b"}", b"[", b"\x00", b"\xff", b"-", b" ", b""])
        )
    path = tmp_path / "fuzz.safetensors"
    path.write_bytes(bytes(content[: len(content) - data.draw(st.sampled_from([0, 0, 1, 7]))]))
    if _ours(path) is not None:
        assert _theirs_accepts(path)
