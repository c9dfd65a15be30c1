"""RAG-Stress: labels, rates, prompts, and the audit of its matcher."""
