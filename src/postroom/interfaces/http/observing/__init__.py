"""What an operator sees of a server: its log, its numbers, its spans, and who was refused what."""
