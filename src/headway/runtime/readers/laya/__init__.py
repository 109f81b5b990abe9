"""Option markers on a text encoder: Laya, and Julia, which differs in how options are written."""
