"""External streams: micro-batches of Spark from a source to a sink, through the graph of a room."""
