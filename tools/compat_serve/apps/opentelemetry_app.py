"""Flask and OpenTelemetry: a span for each request, exported in batches by a thread."""

import os
from pathlib import Path

from flask import Flask
from opentelemetry import trace
from opentelemetry.instrumentation.flask import FlaskInstrumentor
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult


class FileExporter(SpanExporter):
    def export(self, spans):
        with Path(f"spans-{os.getpid()}.txt").open("a") as file:
            file.writelines(f"{span.name}\n" for span in spans)
        return SpanExportResult.SUCCESS

    def shutdown(self):
        pass


provider = TracerProvider(resource=Resource.create({"service.name": "app"}))
provider.add_span_processor(BatchSpanProcessor(FileExporter(), schedule_delay_millis=200))
trace.set_tracer_provider(provider)

app = Flask(__name__)
FlaskInstrumentor().instrument_app(app)


@app.get("/")
def answer():
    return {"pid": os.getpid(), "right": trace.get_current_span().is_recording()}
