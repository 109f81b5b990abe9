"""What a user means by a model: a folder, a GGUF file, a hub id, or a short name of the registry table."""

from __future__ import annotations

import difflib
import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

from headway.artifacts.registry import registry
from headway.errors import ArtifactError

MAX_REFERENCE: Final = 4_096
_HUB_ID = re.compile(
    r"(?P<repo>[A-Za-z0-9][\w.\-]*/[A-Za-z0-9][\w.\-]*?)(:(?P<variant>[\w.\-]+))?(@(?P<revision>[\w./\-]+))?", re.ASCII
)


@dataclass(frozen=True, slots=True)
class Reference:
    """`name` is a path, a hub id or a registry name. `variant` picks one GGUF file of a hub repository."""

    kind: Literal["path", "hub", "registry"]
    name: str
    revision: str | None = None
    variant: str | None = None


def parse_reference(text: str, *, revision: str | None = None, known: tuple[str, ...] = ()) -> Reference:
    """Sort a reference into its kind. What exists on disk wins, then the registry table, then the hub.

    Hub ids are `owner/name[:variant][@revision]`. `known` are further names to suggest after a typing error.

    Raises ArtifactError: `missing_file`, `wrong_case`, `unknown_model`, `revision_conflict`.
    """
    text = text.strip()
    if not text or len(text) > MAX_REFERENCE or "\0" in text:
        raise ArtifactError(
            "expected a model: a folder, a .gguf file, owner/name or a short name; found an empty or impossible one",
            reason="unknown_model",
            param="model",
            fix=f"Try {next(iter(registry()))}.",
        )
    path = Path(os.path.expanduser(text))  # unlike Path.expanduser, leaves "~nobody" as it is
    if os.path.lexists(path):
        return Reference("path", str(path))
    if text in registry():
        if revision is not None:
            raise ArtifactError(
                f"{text} comes from the registry table in one version only, found revision {revision}",
                reason="revision_conflict",
                param="revision",
                fix="Leave the revision out.",
            )
        return Reference("registry", text)
    if (
        text.startswith(("/", "./", "../", "~", "\\"))
        or text.endswith((".gguf", "/"))
        or text.partition("@")[0].count("/") > 1
    ):
        raise _no_such_path(path, text)
    found = _HUB_ID.fullmatch(text)
    if found is None:
        raise _unknown(text, known)
    inline = found["revision"]
    if inline is not None and revision is not None and inline != revision:
        raise ArtifactError(
            f"{text} names the revision {inline}, the flag names {revision}",
            reason="revision_conflict",
            param="revision",
            fix="Give one of them.",
        )
    return Reference("hub", found["repo"], inline or revision, found["variant"])


def nearest(name: str, known: tuple[str, ...]) -> str | None:
    """The known name most like `name`, letter case aside, or None when none is close."""
    lowered = {each.lower(): each for each in known}
    match = difflib.get_close_matches(name.lower(), lowered, n=1, cutoff=0.6)
    return lowered[match[0]] if match else None


def _wrong_case(text: str, right: str, why: str) -> ArtifactError:
    return ArtifactError(
        f"{text} does not exist, {right} does: {why}", reason="wrong_case", param="model", fix=f"Name {right}."
    )


def _unknown(text: str, known: tuple[str, ...]) -> ArtifactError:
    names = tuple(registry())
    if (lowered := text.lower()) in names:
        raise _wrong_case(text, lowered, "short names are written in small letters")
    close = nearest(text.partition("@")[0], (*names, *known))
    hint = f"Did you mean {close}?" if close else f"Short names are {', '.join(names)}."
    return ArtifactError(
        f"{text!r:.200} is no folder, no file, no short name and no hub id (owner/name)",
        reason="unknown_model",
        param="model",
        fix=hint,
    )


def _in_other_case(path: Path) -> Path | None:
    """The one path that exists and differs from `path` in letter case only, or None."""
    if path.exists() or path == path.parent:
        return path
    parent = _in_other_case(path.parent)
    if parent is None:
        return None
    try:
        alike = [entry for entry in parent.iterdir() if entry.name.lower() == path.name.lower()]
    except OSError:
        return None
    return alike[0] if len(alike) == 1 else None


def _no_such_path(path: Path, text: str) -> ArtifactError:
    if (right := _in_other_case(path)) is not None:
        return _wrong_case(text, str(right), "upper and lower case letters differ in file names")
    parent = path.parent
    try:
        siblings = tuple(sorted(entry.name for entry in parent.iterdir())[:10_000])
    except OSError:
        siblings = ()
    close = nearest(path.name, siblings)
    where = "" if siblings or parent.is_dir() else f"; the folder {parent} does not exist either"
    relative = "" if path.is_absolute() else f" (looked in {Path.cwd()})"
    fix = f"Did you mean {parent / close}?" if close else "Check the path."
    return ArtifactError(f"{text} does not exist{relative}{where}", reason="missing_file", param="model", fix=fix)
