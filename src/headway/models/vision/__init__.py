"""Models that read images: a vision tower in front of a decoder, and how bytes of an image become what the tower sees."""
