"""Embeddings of texts, images and sounds in one space: CLIP, SigLIP and Omni packages."""
