"""Where messages of stations are: nodes, names, what goes with a message, and the index of fields."""
