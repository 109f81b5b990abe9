"""Vela 2.0 packages: choices, nouls, scores, sets and spans over typed parts, on an encoder or on a decoder."""
