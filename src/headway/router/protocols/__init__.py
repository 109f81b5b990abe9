"""What clients speak: each protocol is translated to chat completions on the way in and back on the way out."""
