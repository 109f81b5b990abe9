"""Decision 3.0 packages (`d3-code-readout-v1`): options under one-token codes, read by a trained readout."""
