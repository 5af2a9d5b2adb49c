"""The only ways out of a room. They do what committed outbox rows say, and nothing else."""
