"""Sign-in, roles, tokens, audit."""
