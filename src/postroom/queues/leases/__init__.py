"""Messages that are given out for a time: receivers that end their leases, workers, and what goes back."""
