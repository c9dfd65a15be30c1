"""Tables and figures from results."""
