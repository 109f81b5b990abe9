"""Bidirectional encoders on packed rows: BERT and its relatives, one module each, and a way through transformers."""
