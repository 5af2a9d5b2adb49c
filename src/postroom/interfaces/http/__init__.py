"""A room behind a server: one table of operations, from which routes, OpenAPI, client and tests are made."""
