"""The language of flow files: tokens, types, values, patterns, and their meaning, also in Spark SQL."""
