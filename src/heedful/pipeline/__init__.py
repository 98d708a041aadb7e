"""From a plan to a verdict: jobs, explanations, retraining, judgement."""
