"""Running the graph: the plain meaning, the index, and Spark SQL."""
