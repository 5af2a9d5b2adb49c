"""The tree of queues: its description language, loading, policies, and the queues that a reference means."""
