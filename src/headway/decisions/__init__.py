"""Questions about a state: their forms, how models read them, how answers are worked out."""
