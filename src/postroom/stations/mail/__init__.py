"""Mail between stations: shipping, getting, finding messages, and their history."""
