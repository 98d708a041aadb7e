"""Published studies, run again: our numbers compared with the published ones."""
