"""All five capabilities at once in one room, in random order, with failures; and a plain model of the outcome."""
