"""Is a decision model better than a guess? A small labelled set, and what models made of it."""
