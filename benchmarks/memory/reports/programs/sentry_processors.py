"""Each outgoing request makes a span processor, which registers itself for ever."""

import sentry_sdk
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from sentry_sdk.integrations.opentelemetry import SentryPropagator, SentrySpanProcessor

sentry_sdk.init(dsn="http://key@127.0.0.1:9/1", traces_sample_rate=1.0, instrumenter="otel")
provider = TracerProvider()
provider.add_span_processor(SentrySpanProcessor())
trace.set_tracer_provider(provider)
tracer = trace.get_tracer(__name__)
propagator = SentryPropagator()


def tick(number):
    with tracer.start_as_current_span("request") as span:
        propagator.inject({}, trace.set_span_in_context(span))


PER_SECOND = 200
