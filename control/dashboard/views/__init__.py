"""The pages, one module per room."""
