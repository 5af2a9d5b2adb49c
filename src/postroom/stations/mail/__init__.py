"""Mail between stations: shipping, getting, where a message is and was, and what it said."""
