"""Prompts that are read instead of continued: vectors, class probabilities, logits of labels."""
