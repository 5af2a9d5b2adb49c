"""What is wrong with a room or a machine, and what to do about it. Nothing here changes anything."""
