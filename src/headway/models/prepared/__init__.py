"""Weights as a model computes with them, kept on disk so that the next start maps them instead of unpacking the checkpoint again."""
