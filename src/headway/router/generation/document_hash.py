"""The identity of a configuration: what it means, not how it is written."""

from __future__ import annotations

import hashlib

import orjson

from headway.router.config.document.document import Document
from headway.router.config.normal_form import normal_form


def document_hash(document: Document) -> str:
    """SHA-256 of the normal form, hexadecimal: equal for texts that mean the same."""
    return hashlib.sha256(orjson.dumps(normal_form(document), option=orjson.OPT_SORT_KEYS)).hexdigest()
