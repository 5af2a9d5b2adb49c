"""Running compiled rules: what crosses Spark, Saxon, and what comes back."""
