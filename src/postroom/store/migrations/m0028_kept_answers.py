"""A message that answers a request is found by its key: it stays as long as someone may ask for it."""

STATEMENTS = ("CREATE INDEX requests_response ON requests (response) WHERE response IS NOT NULL",)
