"""Pages for operators: the overview, queues and their messages, failures, spheres, the journal, users."""
