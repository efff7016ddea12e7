"""Sites that are linked over the internet, and clocks of machines without a clock chip."""
