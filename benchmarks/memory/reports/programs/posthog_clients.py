"""A client for each event, as mem0's telemetry makes it: its thread waits for ever."""

from posthog import Posthog


def tick(number):
    client = Posthog(project_api_key="key", host="http://127.0.0.1:9", sync_mode=False)
    client.disabled = True
    client.capture("event", distinct_id=str(number))


PER_SECOND = 20
