"""Sequences with option markers whose text a template in the file writes."""

from __future__ import annotations

from headway.artifacts.tokenizer import Tokenizer
from headway.decisions.question import Question
from headway.errors import RequestError
from headway.runtime.readers.gguf_decision.metadata import DecisionMetadata
from headway.runtime.readers.gguf_decision.rendering import render
from headway.runtime.readers.laya.sequence import Head, Sequences, fitted_head


class TemplateSequences(Sequences):
    """The template is rendered without a state, which follows as text or JSON, as in all templates of llama.cpp's converter."""

    def __init__(self, found: DecisionMetadata, tokenizer: Tokenizer, max_tokens: int):
        super().__init__(tokenizer, max_tokens)
        self._found = found
        self._tokenizer = tokenizer

    def head(self, question: Question) -> Head:
        """Raises RequestError (`chat_template_error`) also for a template of another layout."""
        text = render(self._found.template, self._found.kind, "", question, question.options, [], self._plain)
        ids = self._tokenizer.encode(text, add_special_tokens=False)
        markers = [place for place, token in enumerate(ids) if token == self._mask_id]
        expected = len(markers) == len(question.options) and markers[0] >= 2 and ids[markers[0] - 1] == self._sep_id
        if not (expected and ids[-2:] == [self._sep_id, self._sep_id]):
            raise RequestError("the template of this model does not write a question, its options and a state in this order",
                               reason="chat_template_error", fix="Convert the model again.")  # fmt: skip
        ends = [*markers[1:], len(ids) - 2]
        options = [ids[start:end] for start, end in zip(markers, ends, strict=True)]
        return fitted_head(ids[0], ids[1 : markers[0] - 1], options, self._sep_id, self._found.head_tokens)
