"""context_compression: long texts of a request shortened to what matters for it, by leaving parts out."""
