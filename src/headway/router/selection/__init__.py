"""Which of a decision's models answers."""
