"""A tokenizer for what requests bring: text that spells a special token out is text, so nobody forges a marker or a turn."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection

from tokenizers import Tokenizer as Backend

from headway.artifacts.tokenizer import Tokenizer


def plain_tokenizer(tokenizer: Tokenizer, also: Collection[str] = ()) -> Tokenizer:
    """The same vocabulary and rules without the special tokens, and without the added tokens `also`. Other text has the same
    ids as before."""
    document = json.loads(tokenizer.backend.to_str())
    document["added_tokens"] = [token for token in document.get("added_tokens", ()) if not token.get("special") and token["content"] not in also]
    document["post_processor"] = None  # it may name special tokens, and nothing here asks for them
    return Tokenizer(Backend.from_str(json.dumps(document)))


def plain_encode(tokenizer: Tokenizer, also: Collection[str] = ()) -> Callable[[str], list[int]]:
    """Text -> ids, nothing added."""
    plain = plain_tokenizer(tokenizer, also)
    return lambda text: plain.encode(text, add_special_tokens=False)
