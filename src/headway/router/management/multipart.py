"""The one file of a multipart/form-data upload."""

from __future__ import annotations

from dataclasses import dataclass
from email import policy
from email.parser import BytesParser

from headway.router.management.answer import ManagementError

_MOST_PARTS = 8


@dataclass(frozen=True, slots=True)
class Upload:
    name: str
    content: bytes
    purpose: str


def uploaded(content_type: str, raw: bytes) -> Upload:
    """Raises ManagementError for a body that is no upload of one named file."""
    if not content_type.lower().startswith("multipart/form-data"):
        raise ManagementError("INVALID_INPUT", "an upload is multipart/form-data with the part `file`", fix="curl -F file=@notes.md does it.")
    head = f"Content-Type: {content_type}\r\nMIME-Version: 1.0\r\n\r\n".encode("latin-1", "replace")
    message = BytesParser(policy=policy.HTTP).parsebytes(head + raw)
    parts = list(message.iter_parts()) if message.is_multipart() else []
    if not parts or len(parts) > _MOST_PARTS:
        raise ManagementError("INVALID_INPUT", f"the upload must have between 1 and {_MOST_PARTS} parts, found {len(parts)}")
    found, purpose = None, "assistants"
    for part in parts:
        name = part.get_param("name", header="content-disposition")
        content = part.get_payload(decode=True)
        data = content if isinstance(content, bytes) else b""
        if name == "file" and part.get_filename():
            found = str(part.get_filename()), data
        elif name == "purpose":
            purpose = data.decode("utf-8", "replace").strip()[:64]
    if found is None:
        raise ManagementError("INVALID_INPUT", "the upload has no part `file` with a file name")
    name = found[0].replace("\\", "/").rsplit("/", 1)[-1]
    if not name or len(name) > 255 or any(ord(letter) < 32 for letter in name):
        raise ManagementError("INVALID_INPUT", "the file's name must be 1 to 255 printable characters")
    return Upload(name, found[1], purpose)
