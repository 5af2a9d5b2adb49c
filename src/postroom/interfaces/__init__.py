"""How people and programs reach a room from outside. They hold no rules of their own."""
