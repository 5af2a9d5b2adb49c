"""Reading rule programs: from text to tokens, expressions and frozen definitions."""
