"""Demonstration heads: small classifiers on a sentence encoder, trained on texts from templates. They show how signals are served; they are no
guards."""
