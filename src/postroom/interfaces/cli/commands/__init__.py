"""The commands, by what they are about; ``cli/main.py`` lists which module has which."""
