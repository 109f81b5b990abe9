"""Reading the text of an answer while it grows: what is said, what is thought, what is called."""
