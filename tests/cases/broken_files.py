"""Model files and folders that are broken, one way each: the inputs of C01, C02, C03, C05 and their kin, as a table."""

from __future__ import annotations

import json
import struct
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import gguf
import numpy as np
from safetensors.numpy import save

from tests.artifacts.model_files import LLAMA_CONFIG, finish, gguf_writer, write_folder, write_gguf

POINTER = b"version https://git-lfs\noid sha256:%064d\nsize 9876543210\n" % 0
PAGE = b"<!DOCTYPE html><html><head><title>Log in</title></head></html>"
VALID = save({"a": np.zeros((2, 4), np.float32), "b": np.zeros(3, np.float32)})
SHARD_1, SHARD_2 = "model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors"
INDEX = "model.safetensors.index.json"


@dataclass(frozen=True)
class Broken:
    """`make` writes the input below a folder and returns the reference to it. The message must hold every one of `says`
    and name `file`."""

    case: str
    name: str
    reason: str
    file: str
    says: tuple[str, ...]
    make: Callable[[Path], Path]

    def __str__(self) -> str:
        return f"{self.case}-{self.name.replace(' ', '-')}"


def _folder(change: Callable[[Path], object], *, shards: int = 1, config: dict[str, Any] | None = None) -> Callable[[Path], Path]:
    def make(root: Path) -> Path:
        folder = write_folder(root / "m", shards=shards, config=config)
        change(folder)
        return folder

    return make


def _weights(content: bytes) -> Callable[[Path], Path]:
    return _folder(lambda folder: (folder / "model.safetensors").write_bytes(content))


def _file(name: str, content: bytes, *, shards: int = 1) -> Callable[[Path], Path]:
    return _folder(lambda folder: (folder / name).write_bytes(content), shards=shards)


def _header(entries: Any, data: int) -> bytes:
    raw = entries if isinstance(entries, bytes) else json.dumps(entries).encode()
    return struct.pack("<Q", len(raw)) + raw + bytes(data)


def _entry(dtype: str, shape: list[int], start: int, end: int) -> dict[str, Any]:
    return {"dtype": dtype, "shape": shape, "data_offsets": [start, end]}


def _gguf(content: bytes, name: str = "x.gguf") -> Callable[[Path], Path]:
    def make(root: Path) -> Path:
        (root / name).write_bytes(content)
        return root / name

    return make


def _changed_gguf(change: Callable[[bytes], bytes]) -> Callable[[Path], Path]:
    def make(root: Path) -> Path:
        path = write_gguf(root / "x.gguf")
        path.write_bytes(change(path.read_bytes()))
        return path

    return make


def _typed_gguf(architecture: str, kind: str) -> Callable[[Path], Path]:
    def make(root: Path) -> Path:
        writer = gguf_writer(root / "x.gguf", architecture)
        writer.add_type(kind)
        writer.add_tensor("token_embd.weight", np.zeros((50, 32), np.float32))
        finish(writer)
        return root / "x.gguf"

    return make


def _vocabulary_only(root: Path) -> Path:
    finish(gguf_writer(root / "x.gguf"))
    return root / "x.gguf"


def _gguf_directory(root: Path) -> Path:
    (root / "x.gguf").mkdir()
    return root / "x.gguf"


def _gguf_parts(root: Path) -> Path:
    write_gguf(root / "m-00001-of-00003.gguf")
    return root / "m-00001-of-00003.gguf"


def _split_alone(root: Path) -> Path:
    writer = gguf_writer(root / "part.gguf")
    writer.add_uint16("split.count", 2)
    writer.add_tensor("token_embd.weight", np.zeros((50, 32), np.float32))
    finish(writer)
    return root / "part.gguf"


def _without_metadata(root: Path) -> Path:
    writer = gguf.GGUFWriter(root / "x.gguf", "llama")
    writer.add_tensor("token_embd.weight", np.zeros((50, 32), np.float32))
    finish(writer)
    return root / "x.gguf"


def _loop(root: Path) -> Path:
    (root / "x.gguf").symlink_to(root / "x.gguf")
    return root / "x.gguf"


def _wrong_case(root: Path) -> Path:
    write_folder(root / "Models" / "Tiny")
    return root / "models" / "tiny"


def _dangling(folder: Path) -> None:
    (folder / SHARD_2).unlink()
    (folder / SHARD_2).symlink_to("../../blobs/" + "0" * 64)


def _directory(folder: Path) -> None:
    (folder / SHARD_2).unlink()
    (folder / SHARD_2).mkdir()


def _lacks_a_tensor(folder: Path) -> None:
    (folder / SHARD_2).write_bytes(save({"model.norm.weight": np.ones(32, np.float32)}))


def _swapped_index(folder: Path) -> None:
    index = json.loads((folder / INDEX).read_text())
    index["weight_map"]["model.embed_tokens.weight"] = SHARD_2
    (folder / INDEX).write_text(json.dumps(index))


def _only(*names: str) -> Callable[[Path], Path]:
    def make(root: Path) -> Path:
        folder = root / "m"
        folder.mkdir()
        for name in names:
            (folder / name).write_text("{}")
        return folder

    return make


_REFETCH, _LINK, _CONVERT = "Download the file", "download link", "Convert the original model"
_INCOMPLETE = "incomplete download"

INPUTS: tuple[Broken, ...] = (
    # C01: a pointer or web page instead of weights
    Broken("C01", "pointer", "lfs_pointer", "model.safetensors", ("Git LFS pointer", "9876543210 bytes", f"size {len(POINTER)} bytes", "git lfs pull"), _weights(POINTER)),
    Broken("C01", "page", "html_page", "model.safetensors", ("HTML page", f"size {len(PAGE)} bytes", _LINK), _weights(PAGE)),
    Broken("C01", "page after white space", "html_page", "model.safetensors", ("HTML page",), _weights(b"\r\n  " + PAGE)),
    Broken("C01", "storage error", "xml_page", "model.safetensors", ("XML document",), _weights(b'<?xml version="1.0"?><Error/>')),
    Broken("C01", "server error", "error_answer", "model.safetensors", ("error answer",), _weights(b'{"error":"Invalid username or password."}')),
    Broken("C01", "one shard of two", "lfs_pointer", SHARD_2, ("9876543210 bytes", _REFETCH), _file(SHARD_2, POINTER, shards=2)),
    Broken("C01", "config is a pointer", "lfs_pointer", "config.json", ("not a JSON file",), _file("config.json", POINTER)),
    Broken("C01", "index is a page", "html_page", INDEX, ("HTML page",), _file(INDEX, PAGE, shards=2)),
    # C02: truncated, padded or overlapping safetensors
    Broken("C02", "cut by 5", "truncated", "model.safetensors", ("5 bytes are missing", _REFETCH), _weights(VALID[:-5])),
    Broken("C02", "4 appended", "trailing_bytes", "model.safetensors", ("4 bytes follow", _REFETCH), _weights(VALID + b"abcd")),
    Broken("C02", "first 20 bytes", "truncated", "model.safetensors", ("inside its header", "too few", _REFETCH), _weights(VALID[:20])),
    Broken("C02", "empty", "empty_file", "model.safetensors", ("empty file", _REFETCH), _weights(b"")),
    Broken("C02", "3 bytes", "truncated", "model.safetensors", ("needs 8 bytes, the file has 3",), _weights(b"abc")),
    Broken("C02", "64 zeros", "zeros", "model.safetensors", ("zeros at the start", _REFETCH), _weights(bytes(64))),
    Broken("C02", "bad JSON", "header_json", "model.safetensors", ("not valid JSON", _REFETCH), _weights(_header(b"{broken", 8))),
    Broken("C02", "wrong shape", "tensor_entry", "model.safetensors", ("needs 12 bytes, its offsets give it 8",), _weights(_header({"a": _entry("F32", [3], 0, 8)}, 8))),
    Broken("C02", "gap", "tensor_gap", "model.safetensors", ("gap before it of 4 bytes",), _weights(_header({"a": _entry("F32", [2], 0, 8), "b": _entry("F32", [2], 12, 20)}, 20))),
    Broken("C02", "overlap", "tensor_gap", "model.safetensors", ("overlaps the tensor before it by 4 bytes",), _weights(_header({"a": _entry("F32", [2], 0, 8), "b": _entry("F32", [2], 4, 12)}, 12))),
    Broken("C02", "unknown dtype", "unknown_dtype", "model.safetensors", ("'Q9'", "known are", "BF16"), _weights(_header({"a": _entry("Q9", [2], 0, 8)}, 8))),
    Broken("C02", "header of 4 EB", "header_length", "model.safetensors", (f"{1 << 62} bytes", "limit"), _weights(struct.pack("<Q", 1 << 62) + b"{" + bytes(64))),
    Broken("C02", "shape of 4 EB", "tensor_entry", "model.safetensors", ("its offsets give it 8",), _weights(_header({"a": _entry("F32", [1 << 31, 1 << 31], 0, 8)}, 8))),
    # C03: the index and the shards
    Broken("C03", "shard deleted", "missing_shards", SHARD_2, (INDEX, _INCOMPLETE), _folder(lambda folder: (folder / SHARD_2).unlink(), shards=2)),
    Broken("C03", "shard deleted, quantized config", "missing_shards", SHARD_2, (INDEX, _INCOMPLETE),
           _folder(lambda folder: (folder / SHARD_2).unlink(), shards=2, config={**LLAMA_CONFIG, "quantization_config": {"quant_method": "gptq", "bits": 4}})),
    Broken("C03", "shard is a link to nothing", "missing_shards", SHARD_2, ("a link to nothing", _INCOMPLETE), _folder(_dangling, shards=2)),
    Broken("C03", "shard is a directory", "missing_shards", SHARD_2, ("a directory", _INCOMPLETE), _folder(_directory, shards=2)),
    Broken("C03", "shard lacks a tensor", "tensor_not_in_shard", SHARD_2, ("model.layers.0.self_attn.q_proj.weight", "none of the shards", INDEX), _folder(_lacks_a_tensor, shards=2)),
    Broken("C03", "index assigns to the wrong shard", "tensor_not_in_shard", SHARD_2, ("model.embed_tokens.weight", f"is in {SHARD_1}"), _folder(_swapped_index, shards=2)),
    Broken("C03", "numbered without index", "missing_shards", SHARD_2, ("numbering", _INCOMPLETE),
           _folder(lambda folder: [(folder / name).unlink() for name in (INDEX, SHARD_2)], shards=2)),
    Broken("C03", "index without map", "index_invalid", INDEX, ("weight_map",), _file(INDEX, b"{}", shards=2)),
    Broken("C03", "index leaves the folder", "index_invalid", INDEX, ("../secret",), _file(INDEX, b'{"weight_map": {"a": "../secret.safetensors"}}', shards=2)),
    Broken("C03", "GGUF part missing", "missing_shards", "m-00002-of-00003.gguf", (_INCOMPLETE,), _gguf_parts),
    Broken("C03", "GGUF part renamed", "missing_shards", "part.gguf", ("one of 2 files",), _split_alone),
    # C05: not a GGUF file
    Broken("C05", "pointer", "lfs_pointer", "x.gguf", ("b'version '", "9876543210 bytes", "git lfs pull"), _gguf(POINTER)),
    Broken("C05", "page", "html_page", "x.gguf", ("b'<!DOCTYP'", _LINK), _gguf(PAGE)),
    Broken("C05", "page in small letters", "html_page", "x.gguf", ("b'<html><b'", _LINK), _gguf(b"<html><body>no</body></html>")),
    Broken("C05", "GGJT", "old_ggml", "x.gguf", ("GGJT", "b'tjgg", _CONVERT), _gguf(b"tjgg\x03\0\0\0" + bytes(64))),
    Broken("C05", "GGML", "old_ggml", "x.gguf", ("GGML", "b'lmgg", _CONVERT), _gguf(b"lmgg\x03\0\0\0" + bytes(64))),
    Broken("C05", "zeros", "zeros", "x.gguf", ("zeros at the start", r"b'\x00\x00", _REFETCH), _gguf(bytes(64))),
    Broken("C05", "empty", "empty_file", "x.gguf", ("empty file", _REFETCH), _gguf(b"")),
    Broken("C05", "directory", "is_directory", "x.gguf", ("a directory", "Name the file inside"), _gguf_directory),
    Broken("C05", "missing", "missing_file", "x.gguf", ("does not exist", "Check the path"), lambda root: root / "x.gguf"),
    Broken("C05", "archive", "zip_archive", "x.gguf", (r"b'PK\x03\x04", "ZIP"), _gguf(b"PK\x03\x04" + bytes(64))),
    Broken("C05", "pickle", "pickle", "x.gguf", ("pickle", "safetensors"), _gguf(b"\x80\x02}q\x01." + bytes(64))),
    Broken("C05", "gzip", "gzip_archive", "x.gguf", ("gzip", "Unpack"), _gguf(b"\x1f\x8b\x08\0" + bytes(64))),
    Broken("C05", "wrong letter case", "gguf_wrong_case", "x.gguf", ("capitals", "b'gguf"), _changed_gguf(lambda content: b"gguf" + content[4:])),
    Broken("C05", "safetensors", "safetensors_file", "x.gguf", ("looks like a safetensors file", "name the folder"), _gguf(VALID)),
    Broken("C05", "anything else", "not_gguf", "x.gguf", ("b'MZ", "does not start with 'GGUF'"), _gguf(b"MZ" + bytes(range(1, 65)))),
    Broken("C05", "2 bytes", "truncated", "x.gguf", ("shorter than the four letters", "b'GG'"), _gguf(b"GG")),
    Broken("C05", "bytes swapped", "gguf_byteswapped", "x.gguf", ("swapped",), _gguf(b"FUGG" + bytes(64))),
    Broken("C05", "big endian", "gguf_version", "x.gguf", ("big-endian",), _changed_gguf(lambda content: content[:4] + b"\0\0\0\x03" + content[8:])),
    Broken("C05", "version 1", "gguf_version", "x.gguf", ("version 1", "Convert"), _changed_gguf(lambda content: content[:4] + b"\x01\0\0\0" + content[8:])),
    Broken("C05", "cut in the header", "truncated", "x.gguf", ("the file ends inside", "too few", _REFETCH), _changed_gguf(lambda content: content[:200])),
    Broken("C05", "cut in the data", "truncated", "x.gguf", ("its tensor data", "100 too few", _REFETCH), _changed_gguf(lambda content: content[:-100])),
    Broken("C05", "2^40 tensors", "gguf_invalid", "x.gguf", ("claims 1099511627776 tensors", "limit"), _changed_gguf(lambda content: content[:8] + struct.pack("<Q", 1 << 40) + content[16:])),
    Broken("C05", "100000 tensors", "truncated", "x.gguf", ("list of 100000 tensors",), _changed_gguf(lambda content: content[:8] + struct.pack("<Q", 100_000) + content[16:])),
    Broken("C05", "key of 2^60 bytes", "gguf_invalid", "x.gguf", ("limit",), _changed_gguf(lambda content: content[:24] + struct.pack("<Q", 1 << 60) + content[32:])),
    Broken("C05", "adapter", "adapter_only", "x.gguf", ("LoRA adapter", "Merge"), _typed_gguf("llama", "adapter")),
    Broken("C05", "image part", "not_a_model", "x.gguf", ("image or sound part", "'clip'"), _typed_gguf("clip", "model")),
    Broken("C05", "vocabulary only", "no_weights", "x.gguf", ("a vocabulary", "0 tensors"), _vocabulary_only),
    Broken("C05", "no metadata", "gguf_metadata", "x.gguf", ("embedding_length", "positive number"), _without_metadata),
    Broken("C05", "link in a circle", "unreadable_file", "x.gguf", ("unreadable",), _loop),
    # folders without a usable model
    Broken("other", "only pickles", "unsafe_weights", "m", ("pytorch_model.bin", "can run code", "safetensors"), _only("pytorch_model.bin", "config.json")),
    Broken("other", "adapter", "adapter_only", "m", ("LoRA adapter", "merge_and_unload"), _only("adapter_config.json")),
    Broken("other", "empty folder", "no_weights", "m", ("model.safetensors", "*.gguf"), _only()),
    Broken("other", "no config", "missing_config", "config.json", ("architecture is unknown",), _folder(lambda folder: (folder / "config.json").unlink())),
    Broken("other", "config is a list", "invalid_json", "config.json", ("JSON object, found list",), _file("config.json", b"[]")),
    Broken("other", "config is cut", "invalid_json", "config.json", ("not valid JSON",), _file("config.json", b'{"architectures": [')),
    Broken("other", "config nests", "invalid_json", "config.json", ("deeper than 64",), _file("config.json", b'{"a":' + b"[" * 400 + b"]" * 400 + b"}")),
    Broken("other", "config nests far too deep", "invalid_json", "config.json", ("not valid JSON",), _file("config.json", b'{"a":' + b"[" * 100_000)),
    Broken("other", "weight file named", "not_a_model", "model.safetensors", ("Name the folder",), lambda root: write_folder(root / "m") / "model.safetensors"),
    Broken("other", "config named", "not_a_model", "config.json", ("Name the folder",), lambda root: write_folder(root / "m") / "config.json"),
    Broken("other", "wrong case", "wrong_case", "tiny", ("letters differ", "Models/Tiny"), _wrong_case),
    Broken("other", "absent folder", "missing_file", "tiny-modle", ("does not exist", "Did you mean"), lambda root: write_folder(root / "tiny-model").with_name("tiny-modle")),
)  # fmt: skip
