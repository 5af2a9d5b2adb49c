"""WS-ReliableMessaging 1.1: sequences of messages, each delivered exactly once and in order."""
