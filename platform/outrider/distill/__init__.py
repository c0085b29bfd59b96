"""A draft head for the model that it drafts for: the texts it learns from."""
