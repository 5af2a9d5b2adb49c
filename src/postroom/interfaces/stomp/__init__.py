"""Programs in other languages, by STOMP 1.2."""
