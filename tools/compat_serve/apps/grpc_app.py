"""gRPC: each worker has a server of its own, and calls it for each request."""

import os
from concurrent.futures import ThreadPoolExecutor

import grpc
from flask import Flask

app = Flask(__name__)
state = {}


def answer_call(request, context):
    return request + b" " + str(os.getpid()).encode()


def start():
    """Called in each worker by a hook: neither servers nor channels come over a fork."""
    method = grpc.unary_unary_rpc_method_handler(answer_call)
    server = grpc.server(ThreadPoolExecutor(2))
    server.add_generic_rpc_handlers([grpc.method_handlers_generic_handler("app", {"ask": method})])
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    channel = grpc.insecure_channel(f"127.0.0.1:{port}")
    state.update(server=server, channel=channel, ask=channel.unary_unary("/app/ask"))


def stop():
    state["channel"].close()
    state["server"].stop(grace=1).wait()


@app.get("/")
def answer():
    said = state["ask"](b"pid", timeout=5)
    return {"pid": os.getpid(), "right": said == f"pid {os.getpid()}".encode()}
