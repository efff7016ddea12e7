"""A producer and a consumer that hand a turn to and fro."""
