"""Models under audit: the Subject protocol and the families that fulfil it."""
