"""Items that go one way through a queue."""
