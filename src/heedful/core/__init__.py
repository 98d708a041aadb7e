"""Values, records, errors, registry, random keys: what every room shares."""
