"""Reading logs of any size: undress lines, keep those that some rule or fact wants to see."""
