"""Item failures that decision readers have in common."""

from __future__ import annotations

from headway.decisions.question import Subject
from headway.decisions.row import ItemFailure


def refuse_media(subject: Subject) -> ItemFailure | None:
    """For models that read text: why a question about images or videos has no answer."""
    if not subject.media:
        return None
    return ItemFailure("invalid_input", f"this model reads text here, found {len(subject.media)} image(s) or video(s); send the question without them")


def too_long(found: int | None, most: int) -> ItemFailure:
    """A prompt over the model's limit. `found` is None where it was not counted, since it surely is too long."""
    has = f"more than {most}" if found is None else str(found)
    return ItemFailure("max_length_exceeded", f"the question prompt has {has} tokens, the model reads at most {most}; nothing was truncated")
