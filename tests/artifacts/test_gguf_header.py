from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import gguf
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from headway.artifacts.gguf_header import GgufHeader, read_gguf_header
from headway.errors import ArtifactError
from tests.artifacts.model_files import finish, gguf_writer, write_gguf


def _field(reader: gguf.GGUFReader, name: str) -> Any:
    return reader.fields[name].contents()


def test_header_agrees_with_the_gguf_package(tmp_path: Path) -> None:
    path = tmp_path / "m.gguf"
    writer = gguf_writer(path)
    writer.add_array("x.floats", [0.5, 1.5])
    writer.add_array("x.flags", [True, False])
    writer.add_array("x.words", ["a", "", "中"])
    writer.add_int64("x.negative", -5)
    writer.add_float64("x.double", 0.1)
    weight = np.random.default_rng(0).standard_normal((4, 64)).astype(np.float32)
    for kind in ("Q8_0", "Q4_1", "Q5_0"):
        qtype = gguf.GGMLQuantizationType[kind]
        writer.add_tensor(f"{kind}.weight", gguf.quantize(weight, qtype), raw_dtype=qtype)
    writer.add_tensor("plain", weight.astype(np.float16).reshape(2, 2, 64))
    finish(writer)

    header, reader = read_gguf_header(path), gguf.GGUFReader(path)
    for name in header.metadata:
        ours, theirs = header.metadata[name], _field(reader, name)
        assert (ours.tolist() if isinstance(ours, np.ndarray) else ours) == theirs, name
    assert len(header.metadata) == len([name for name in reader.fields if not name.startswith("GGUF.")])
    for tensor in reader.tensors:
        mine = header.tensors[tensor.name]
        assert mine.shape == tuple(int(n) for n in reversed(tensor.shape))
        assert (mine.dtype, mine.nbytes, mine.offset) == (tensor.tensor_type.name, tensor.n_bytes, tensor.data_offset)
    assert len(header.tensors) == len(reader.tensors)
    assert header.data_end <= header.size == path.stat().st_size


def test_a_large_vocabulary_is_read_as_a_list(tmp_path: Path) -> None:
    writer = gguf_writer(tmp_path / "m.gguf", tokens=60_000)
    finish(writer)
    tokens = read_gguf_header(tmp_path / "m.gguf").metadata["tokenizer.ggml.tokens"]
    assert tokens == [f"t{i}é" for i in range(60_000)]


@pytest.mark.parametrize(
    ("content", "reason", "says"),
    [
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 9876543210\n", "lfs_pointer", "9876543210"),
        (b"<!DOCTYPE html><html></html>", "html_page", "HTML"),
        (b"<html><body>login</body>", "html_page", "HTML"),
        (b'{"error":"Repository not found"}', "error_answer", "JSON"),
        (b"tjgg" + bytes(40), "old_ggml", "GGJT"),
        (b"lmgg" + bytes(40), "old_ggml", "GGML"),
        (b"fmgg" + bytes(40), "old_ggml", "GGMF"),
        (bytes(64), "zeros", "zeros"),
        (b"PK\x03\x04" + bytes(40), "zip_archive", "ZIP"),
        (b"\x80\x02}q\x00.", "pickle", "pickle"),
        (b"gguf" + bytes(40), "gguf_wrong_case", "capitals"),
        (b"FUGG" + bytes(40), "gguf_byteswapped", "swapped"),
        (b"something else", "not_gguf", "does not start"),
        (b"GG", "truncated", "shorter"),
        (b"", "empty_file", "empty"),
    ],
)
def test_each_kind_of_wrong_file_has_its_own_reason(tmp_path: Path, content: bytes, reason: str, says: str) -> None:
    path = tmp_path / "x.gguf"
    path.write_bytes(content)
    with pytest.raises(ArtifactError) as caught:
        read_gguf_header(path)
    assert caught.value.reason == reason
    assert says in caught.value.message
    assert str(path) in caught.value.message
    if content:
        assert str(len(content)) in caught.value.message


def test_directory_missing_file_and_dangling_link(tmp_path: Path) -> None:
    (tmp_path / "dir.gguf").mkdir()
    (tmp_path / "link.gguf").symlink_to(tmp_path / "nowhere")
    for name, reason in (("dir.gguf", "is_directory"), ("none.gguf", "missing_file"), ("link.gguf", "dangling_link")):
        with pytest.raises(ArtifactError) as caught:
            read_gguf_header(tmp_path / name)
        assert caught.value.reason == reason


def _header(version: int = 3, tensors: int = 0, keys: int = 0, body: bytes = b"") -> bytes:
    return b"GGUF" + struct.pack("<IQQ", version, tensors, keys) + body + bytes(64)


def _text(text: bytes) -> bytes:
    return struct.pack("<Q", len(text)) + text


def _tensor(name: bytes, dims: list[int], kind: int, offset: int) -> bytes:
    return _text(name) + struct.pack(f"<I{len(dims)}QIQ", len(dims), *dims, kind, offset)


@pytest.mark.parametrize(
    ("content", "reason", "says"),
    [
        (_header(version=1), "gguf_version", "version 1"),
        (_header(version=4), "gguf_version", "version 4"),
        (_header(version=0x03000000), "gguf_version", "big-endian"),
        (_header(tensors=1 << 60), "gguf_invalid", "limit"),
        (_header(keys=1 << 60), "gguf_invalid", "limit"),
        (_header(keys=60_000), "truncated", "too few"),
        (_header(keys=1, body=struct.pack("<Q", 1 << 40)), "gguf_invalid", "limit"),
        (_header(keys=1, body=_text(b"k") + struct.pack("<IQ", 8, 1 << 62)), "gguf_invalid", "limit"),
        (_header(keys=1, body=_text(b"k") + struct.pack("<IQ", 8, 5000)), "truncated", "too few"),
        (_header(keys=1, body=_text(b"k") + struct.pack("<IIQ", 9, 8, 1 << 50)), "gguf_invalid", "limit"),
        (_header(keys=1, body=_text(b"k") + struct.pack("<IIQ", 9, 6, 1 << 20)), "truncated", "too few"),
        (_header(keys=1, body=_text(b"k") + struct.pack("<I", 99)), "gguf_invalid", "type 99"),
        (_header(keys=1, body=_text(b"k") + struct.pack("<I", 9) + struct.pack("<IQ", 9, 1) * 20), "gguf_invalid", "nests"),
        (_header(keys=1, body=_text(b"k") + struct.pack("<IB", 7, 2)), "gguf_invalid", "truth value"),
        (_header(keys=1, body=_text(b"k") + struct.pack("<IIQ3B", 9, 7, 3, 1, 0, 9)), "gguf_invalid", "truth values"),
        (_header(keys=1, body=_text(b"k") + struct.pack("<IIQ", 9, 9, 140_000) + struct.pack("<IQ", 0, 0) * 140_000), "gguf_invalid", "131072 arrays"),
        (_header(keys=2, body=(_text(b"k") + struct.pack("<IB", 7, 1)) * 2), "gguf_invalid", "twice"),
        (_header(keys=1, body=_text(b"general.alignment") + struct.pack("<II", 4, 48)), "gguf_invalid", "power of two"),
        (_header(tensors=1, body=_tensor(b"t", [1] * 5, 0, 0)), "gguf_invalid", "dimensions"),
        (_header(tensors=1, body=_tensor(b"t", [32], 77, 0)), "gguf_block_type", "77"),
        (_header(tensors=1, body=_tensor(b"t", [32], 4, 0)), "gguf_block_type", "removed"),
        (_header(tensors=1, body=_tensor(b"t", [31], 8, 0)), "gguf_invalid", "divide"),
        (_header(tensors=1, body=_tensor(b"t", [4], 0, 3)), "gguf_invalid", "alignment"),
        (_header(tensors=1, body=_tensor(b"t", [1 << 40, 1 << 40], 0, 0)), "gguf_invalid", "no memory"),
        (_header(tensors=1, body=_tensor(b"t", [1 << 30], 0, 0)), "truncated", "too few"),
        (_header(tensors=2, body=_tensor(b"t", [1], 0, 0) * 2), "gguf_invalid", "twice"),
        (_header(tensors=2, body=_tensor(b"a", [4], 0, 0) + _tensor(b"b", [4], 0, 0)), "gguf_invalid", "overlaps"),
    ],
)  # fmt: skip
def test_damaged_headers_are_refused_by_kind(tmp_path: Path, content: bytes, reason: str, says: str) -> None:
    path = tmp_path / "x.gguf"
    path.write_bytes(content)
    with pytest.raises(ArtifactError) as caught:
        read_gguf_header(path)
    assert (caught.value.reason, says in caught.value.message) == (reason, True), caught.value.message


def test_truncation_says_how_many_bytes_are_missing(tmp_path: Path) -> None:
    path = write_gguf(tmp_path / "m.gguf")
    content = path.read_bytes()
    end = read_gguf_header(path).data_end
    path.write_bytes(content[: end - 5])
    with pytest.raises(ArtifactError, match=r"5 too few") as caught:
        read_gguf_header(path)
    assert caught.value.reason == "truncated"


@pytest.fixture(scope="module")
def valid(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    return write_gguf(tmp_path_factory.mktemp("gguf") / "valid.gguf").read_bytes()


def _read(path: Path, content: bytes) -> GgufHeader | None:
    path.write_bytes(content)
    try:
        return read_gguf_header(path)
    except ArtifactError:
        return None


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(body=st.binary(max_size=400), magic=st.booleans())
def test_random_bytes_give_a_header_or_an_artifact_error(tmp_path: Path, body: bytes, magic: bool) -> None:
    _read(tmp_path / "fuzz.gguf", (b"GGUF\x03\x00\x00\x00" if magic else b"") + body)


@settings(max_examples=250, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_mutations_of_a_valid_file_give_a_header_or_an_artifact_error(
    tmp_path: Path, valid: bytes, data: st.DataObject
) -> None:
    content = bytearray(valid)
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, min(len(content) - 1, 2400)))
        content[at : at + 1] = data.draw(
            st.sampled_from([b"\x00", b"\xff", b"\x7f", b"\x09", b"\x08\x00\x00\x00", b""])
        )
    header = _read(tmp_path / "fuzz.gguf", bytes(content[: data.draw(st.integers(0, len(content)))]))
    if header is not None:
        assert all(tensor.offset + tensor.nbytes <= header.size for tensor in header.tensors.values())
