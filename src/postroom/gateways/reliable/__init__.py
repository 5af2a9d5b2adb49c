"""WS-ReliableMessaging 1.1: sequences of messages, each once and in order, whatever is lost or doubled on the way."""
