"""System One and Decisions on a language model: each question is one prompt, answered by the logits of its labels."""
