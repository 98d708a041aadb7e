"""Where and when jobs run, and what is already done."""
