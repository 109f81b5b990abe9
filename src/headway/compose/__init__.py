"""`headway up`: which processes run, in which order, how they stop."""
