"""The graph of a room: its versions, how it changes, who may change it, and how it is shown."""
