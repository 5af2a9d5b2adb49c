"""Where stations keep messages: nodes, queues, moves, and the index of fields."""
