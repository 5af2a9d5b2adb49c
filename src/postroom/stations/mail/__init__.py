"""Mail between stations: shipping, getting, and where a message is and was."""
