"""How people and programs use a room from outside. Interfaces contain no rules of their own."""
