"""A room behind a server: one table of operations, and from it routes, OpenAPI, the client and the tests."""
