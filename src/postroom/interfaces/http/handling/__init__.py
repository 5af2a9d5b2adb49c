"""What happens to a request, from its first line to the last byte of its answer."""
