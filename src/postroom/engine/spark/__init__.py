"""Everything about Spark itself: its session, its Java, its workers, and what crosses between them and us."""
