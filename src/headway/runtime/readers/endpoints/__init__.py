"""Questions whose options are read at the last token of each, on a decoder: Decision 2.0, and Decision 1.0 on Qwen3.5."""
