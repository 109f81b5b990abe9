"""From planned rows to forward passes: admission, queue, the device thread, the result cache."""
