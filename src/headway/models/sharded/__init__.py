"""One rank's share of a decoder: which layers, which rows and columns of their matrices, and how the shares become one again."""
