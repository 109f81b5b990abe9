"""Decoders read without generating: hidden states and label logits of rows, with the start that rows share computed once."""
