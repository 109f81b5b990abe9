"""The setting `do_lower_case` of sentence-transformers: texts are lowered before the tokenizer's own normalization."""

from __future__ import annotations

from tokenizers import normalizers

from headway.artifacts.tokenizer import Tokenizer
from headway.runtime.package import Package


def apply_lower_case(tokenizer: Tokenizer, package: Package) -> None:
    """Changes `tokenizer` if the package asks for it. Lowering twice is lowering once."""
    if (package.json("sentence_bert_config.json") or {}).get("do_lower_case") is True:
        own = tokenizer.backend.normalizer
        tokenizer.backend.normalizer = normalizers.Sequence([normalizers.Lowercase(), *([] if own is None else [own])])
