"""Running compiled rules: exchange with Spark, and Saxon."""
