"""SCOPE: selective trust by matched preference data."""

__version__ = "0.1.0"
