"""From definitions to queries: checks, what a query reads, the translation to XQuery, and the plan that is run."""
