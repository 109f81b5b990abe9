"""The configuration document: read, checked, migrated, kept."""
