"""Checks that remove or keep the words a method ranks highest."""
