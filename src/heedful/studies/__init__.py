"""Published studies run again: every data set found, every model, ours beside the published."""
