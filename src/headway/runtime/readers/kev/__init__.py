"""Kev: a decoder that points at one of the options, with a query from the prompt's end and keys from the options' ends."""
