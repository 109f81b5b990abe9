"""Answers that may be given again, on several backends behind one interface."""
