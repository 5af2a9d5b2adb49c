"""Everything about Spark itself: session, Java, workers, and data exchange with them."""
