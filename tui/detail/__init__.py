"""What is known of one run, laid out for its detail screen."""
