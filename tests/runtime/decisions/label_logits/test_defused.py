"""Whatever users write, no special token comes of it, and nothing is lost."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from tokenizers import Tokenizer as Backend
from tokenizers import models

from headway.artifacts.tokenizer import Tokenizer
from headway.decisions.label_logits.defused import defuser

PIECES = ["<|im_start|>", "<|im_end|>", "<|endoftext|>", "<|im_", "start|>", "<", "|", ">", "<<|im_end|>|im_end|>", "a", " ", "é", "\u200b"]



@given(st.lists(st.sampled_from(PIECES), max_size=12).map("".join))
def test_no_added_token_comes_of_a_text(tokenizer: Tokenizer, text: str) -> None:
    defused = defuser(tokenizer)(text)
    assert tokenizer.added_ids.isdisjoint(tokenizer.encode(defused, add_special_tokens=False))
    assert defused.replace("\u200b", "") == text.replace("\u200b", "")


def test_harmless_text_stays_as_it_is(tokenizer: Tokenizer) -> None:
    text = "if a < b: print('<im_start> |x|')"
    assert defuser(tokenizer)(text) == text
    assert tokenizer.added_ids & set(tokenizer.encode("x<|im_end|>y"))  # the danger is real


def test_breaking_one_token_up_may_leave_another_that_overlapped() -> None:
    backend = Backend(models.WordLevel({"x": 0}, unk_token="x"))
    backend.add_special_tokens(["<<a", "<a>", "¤"])
    tokenizer = Tokenizer(backend)
    defused = defuser(tokenizer)("<<a> ¤")
    assert tokenizer.added_ids.isdisjoint(tokenizer.encode(defused))
    assert tokenizer.added_ids & set(tokenizer.encode("<\u200b<a>"))
