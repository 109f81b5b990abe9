"""What this machine is: CPU budget, memory limits, instruction set. Pure functions of a file-system root."""
