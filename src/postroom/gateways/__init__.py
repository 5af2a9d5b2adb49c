"""The only ways out of a room. Gateways perform committed effects of the outbox, and nothing else."""
