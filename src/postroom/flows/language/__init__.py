"""The language of flow files: words, types, values, patterns, and what they mean, also in Spark SQL."""
