"""Bulk generation: a file of requests goes in, every row comes out exactly once."""
