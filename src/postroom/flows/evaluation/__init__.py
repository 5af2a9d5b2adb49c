"""Running the graph: on Spark, by an index, or in a worker."""
