"""What a file that is not a weight file really is, told from its first bytes: one table, one reason per kind."""

from __future__ import annotations

import re
import stat
from dataclasses import dataclass
from pathlib import Path

from headway.errors import ArtifactError

HEAD_BYTES = 1024


@dataclass(frozen=True, slots=True)
class ForeignKind:
    """`reason` is stable; `what` completes "... is"; `fix` is an instruction."""

    prefix: bytes
    reason: str
    what: str
    fix: str


_REFETCH = "Download the file itself again (`hf download OWNER/NAME`, or `git lfs pull` in a clone)."
_LINK = "The link led to a page, not to the file: use the download link (`/resolve/`, not `/blob/`), and log in if it needs a login."
_CONVERT_OLD = "Convert the original model again with a current llama.cpp (`convert_hf_to_gguf.py`)."

# Order matters only where one prefix starts with another.
FOREIGN_KINDS: tuple[ForeignKind, ...] = (
    ForeignKind(b"version https://git-lfs", "lfs_pointer", "a Git LFS pointer, not the weights", _REFETCH),
    ForeignKind(b"<!DO", "html_page", "an HTML page", _LINK),
    ForeignKind(b"<!do", "html_page", "an HTML page", _LINK),
    ForeignKind(b"<htm", "html_page", "an HTML page", _LINK),
    ForeignKind(b"<HTM", "html_page", "an HTML page", _LINK),
    ForeignKind(b"<?xm", "xml_page", "an XML document (often the error answer of a storage service)", _LINK),
    ForeignKind(b'{"error', "error_answer", "the JSON error answer of a server", _LINK),
    ForeignKind(b"tjgg", "old_ggml", "a GGJT file, the format before GGUF", _CONVERT_OLD),
    ForeignKind(b"lmgg", "old_ggml", "a GGML file, the format before GGUF", _CONVERT_OLD),
    ForeignKind(b"fmgg", "old_ggml", "a GGMF file, the format before GGUF", _CONVERT_OLD),
    ForeignKind(b"algg", "old_ggml_adapter", "an old GGLA adapter, not a model", _CONVERT_OLD),
    ForeignKind(b"PK\x03\x04", "zip_archive", "a ZIP archive (a PyTorch `.bin`/`.pt` file or an archive)",
                "Unpack the archive, or convert a PyTorch checkpoint to safetensors."),
    ForeignKind(b"\x80\x02", "pickle", "a Python pickle, which can run code when it is read",
                "Convert it to safetensors (`safetensors.torch.save_file`) on a machine where you trust it."),
    ForeignKind(b"\x1f\x8b", "gzip_archive", "a gzip archive", "Unpack it first."),
    ForeignKind(b"GGUF", "gguf_file", "a GGUF file", "Give it the ending `.gguf`."),
    ForeignKind(b"FUGG", "gguf_byteswapped", "a GGUF file with swapped bytes", _CONVERT_OLD),
    ForeignKind(bytes(8), "zeros", "zeros at the start: an export or a download that never finished", _REFETCH),
)  # fmt: skip

_LFS_SIZE = re.compile(rb"^size (\d{1,19})\s*$", re.MULTILINE)


def foreign_kind(head: bytes) -> ForeignKind | None:
    """Find the kind whose prefix `head` starts with, white space in front of text ignored; None if nothing matches."""
    text = head.lstrip(b"\xef\xbb\xbf \t\r\n")
    for kind in FOREIGN_KINDS:
        if head.startswith(kind.prefix) or (kind.prefix[:1] in b"<{v" and text.startswith(kind.prefix)):
            return kind
    return None


def foreign_error(
    path: Path, expected: str, head: bytes, size: int, *, otherwise: str, reason: str, fix: str = _REFETCH
) -> ArtifactError:
    """Name what `path` is instead of `expected`. `otherwise`, `reason` and `fix` serve when no kind matches."""
    kind = foreign_kind(head)
    shown = head[:8]
    if kind is None:
        return ArtifactError(
            f"{path} is not {expected}: {otherwise} (size {size} bytes, first bytes {shown!r})",
            reason=reason,
            param=str(path),
            fix=fix,
        )
    what = kind.what
    if kind.reason == "lfs_pointer" and (found := _LFS_SIZE.search(head)):
        what = f"{what}; the real file has {int(found[1])} bytes"
    return ArtifactError(
        f"{path} is not {expected}: it is {what} (size {size} bytes, first bytes {shown!r})",
        reason=kind.reason,
        param=str(path),
        fix=kind.fix,
    )


def regular_file_size(path: Path, expected: str) -> int:
    """Size of a regular, non-empty file in bytes.

    Raises ArtifactError with reason `missing_file`, `dangling_link`, `is_directory`, `not_a_file`, `unreadable_file`
    or `empty_file`.
    """

    def refuse(found: str, reason: str, fix: str) -> ArtifactError:
        return ArtifactError(f"{path}: expected {expected}, found {found}", reason=reason, param=str(path), fix=fix)

    try:
        status = path.stat()
    except FileNotFoundError:
        if path.is_symlink():
            return_to = "The download did not finish; run it again."
            raise refuse("a link whose target does not exist", "dangling_link", return_to) from None
        raise refuse("no such file", "missing_file", "Check the path.") from None
    except OSError as error:
        raise refuse(
            f"an unreadable file ({error.strerror})", "unreadable_file", "Check path and permissions."
        ) from None
    except ValueError as error:
        raise refuse(f"an impossible path ({error})", "missing_file", "Check the path.") from None
    if stat.S_ISDIR(status.st_mode):
        raise refuse("a directory", "is_directory", "Name the file inside it, or the model folder.")
    if not stat.S_ISREG(status.st_mode):
        raise refuse("something that is not a regular file", "not_a_file", "Name a regular file.")
    if status.st_size == 0:
        raise refuse("an empty file", "empty_file", _REFETCH)
    return status.st_size
