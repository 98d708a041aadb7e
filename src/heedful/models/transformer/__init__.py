"""Hugging Face transformers as subjects."""
