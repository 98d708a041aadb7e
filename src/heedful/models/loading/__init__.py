"""What is required of model folders before anything is built of them, and one net for the rest."""
