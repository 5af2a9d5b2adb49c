"""Reading flow files: words, types, values, patterns and expressions."""
