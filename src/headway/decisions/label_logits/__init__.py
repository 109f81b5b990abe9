"""Decisions on any language model: the question as a chat, the answer read off the logits of one-token labels."""
