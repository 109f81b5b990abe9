"""`/v1/responses`: answers that may be kept, followed, asked for again and cancelled."""
