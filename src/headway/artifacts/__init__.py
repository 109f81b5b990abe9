"""A model reference -> verified local files -> a card of what is inside, without allocating weights."""
