"""Process groups, the channel for commands, and where ranks live: what several processes need to compute one model."""
