"""redis-py, as it is, used by 1,000 tasklets at once, with a real Redis."""

from pathlib import Path

import pytest

from tests import servers
from tests.servers import Service
from tests.support import Child
from tests.tasklets.io.libraries import needs, run_patched

CONNECT = """
import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

URL = os.environ["URL"]
client = redis.Redis.from_url(URL, decode_responses=True, max_connections=2_000)
watcher = redis.Redis.from_url(URL)  # what the server says, on a connection of its own
"""


def run_with_redis(code: str, service: Service, name: str) -> Child:
    """name: what this test's keys begin with."""
    needs("redis")
    return run_patched(CONNECT + code, env={"URL": service.url, "KEY": name})


@pytest.mark.slow
def test_a_thousand_tasklets_share_a_client(redis_server: Service) -> None:
    run_with_redis(
        """
COUNT = 1_000

def work(number):
    key = f"shared:{number}"
    client.set(key, number)
    with client.pipeline() as several:
        several.incrby(key, 5).get(key).rpush(f"{key}:list", "a", "b").expire(key, 60)
        _, first, length, _ = several.execute()
    return int(first), length, client.lrange(f"{key}:list", 0, -1)

together = Together(work, COUNT)
assert together.answers() == [(n + 5, 2, ["a", "b"]) for n in range(COUNT)]
assert together.turns > 3
client.close()
print("fine")
""",
        redis_server,
        "shared",
    )


@pytest.mark.slow
def test_a_thousand_wait_at_once_in_the_server(redis_server: Service) -> None:
    run_with_redis(
        """
COUNT = 1_000
blocked = []

def all_wait():
    blocked.append(watcher.info("clients")["blocked_clients"])
    return blocked[-1] == COUNT

def answer(together):
    assert not together.results
    with watcher.pipeline(transaction=False) as several:
        for number in range(COUNT):
            several.rpush(f"wait:{number}", number)
        several.execute()

def work(number):
    key, value = client.blpop(f"wait:{number}", timeout=100)
    return key, value

together = Together(work, COUNT, until=all_wait, then=answer)
assert together.answers() == [(f"wait:{n}", str(n)) for n in range(COUNT)]
assert max(blocked) == COUNT
client.close()
print("fine")
""",
        redis_server,
        "wait",
    )


def test_a_pool_that_blocks_is_shared(redis_server: Service) -> None:
    run_with_redis(
        """
COUNT, SIZE = 300, 10
pool = redis.BlockingConnectionPool.from_url(URL, max_connections=SIZE, timeout=60)
shared = redis.Redis(connection_pool=pool, client_name="pooled")
most = 0

def work(number):
    global most
    with shared.pipeline() as several:
        several.set(f"pooled:{number}", number).get(f"pooled:{number}").client_list()
        *_, value, clients = several.execute()
    most = max(most, sum("multi=-1" not in c["name"] and c["name"] == "pooled" for c in clients))
    return int(value)

pool.connection_kwargs["client_name"] = "pooled"
assert Together(work, COUNT).answers() == list(range(COUNT))
assert 2 <= most <= SIZE
# One that is not given back in time.
short = redis.BlockingConnectionPool.from_url(URL, max_connections=1, timeout=0.05)
held = short.get_connection()
poor = redis.Redis(connection_pool=short)
assert Together(lambda number: raised(poor.ping), 5).answers() == ["ConnectionError"] * 5
short.release(held)
assert poor.ping()
for each in (pool, short):
    each.disconnect()
print("fine")
""",
        redis_server,
        "pooled",
    )


def test_waits_end_by_their_time_outs(redis_server: Service) -> None:
    run_with_redis(
        """
hasty = redis.Redis.from_url(URL, socket_timeout=0.1, retry=Retry(NoBackoff(), 0))

def work(number):
    if number % 2:
        return client.blpop("nobody:pushes", timeout=0.1)
    return raised(hasty.blpop, "nobody:pushes", 30)

together = Together(work, 60)
assert together.answers() == ["TimeoutError", None] * 30
assert together.turns > 3
assert client.ping()
client.close(), hasty.close()
print("fine")
""",
        redis_server,
        "late",
    )


def test_subscribers(redis_server: Service) -> None:
    run_with_redis(
        """
COUNT = 100

def all_listen():
    return watcher.pubsub_numsub("news")[0][1] == COUNT

def publish(together):
    for number in range(3):
        assert watcher.publish("news", number) == COUNT

def work(number):
    heard = []
    with client.pubsub() as subscriber:
        subscriber.subscribe("news")
        for message in subscriber.listen():
            if message["type"] == "message":
                heard.append(message["data"])
            if len(heard) == 3:
                return heard, subscriber.get_message(timeout=0.01)

together = Together(work, COUNT, until=all_listen, then=publish)
assert together.answers() == [(["0", "1", "2"], None)] * COUNT
client.close()
print("fine")
""",
        redis_server,
        "news",
    )


def test_a_subscriber_in_a_thread(redis_server: Service) -> None:
    """redis-py's own thread hears for tasklets, which wait for it."""
    run_with_redis(
        """
import queue
heard = queue.Queue()
subscriber = client.pubsub()
subscriber.subscribe(**{"thread-news": heard.put})
thread = subscriber.run_in_thread(sleep_time=0.01, daemon=True)

def all_listen():
    return watcher.pubsub_numsub("thread-news")[0][1] == 1

def publish(together):
    for number in range(20):
        watcher.publish("thread-news", number)

together = Together(lambda number: heard.get()["data"], 20, until=all_listen, then=publish)
assert sorted(map(int, together.answers())) == list(range(20))
thread.stop()
thread.join()
client.close()
print("fine")
""",
        redis_server,
        "threads",
    )


def test_its_distributed_lock(redis_server: Service) -> None:
    """Who does not get it sleeps and asks again; time.sleep is a tasklet's, too."""
    run_with_redis(
        """
inside = most = 0

def work(number):
    global inside, most
    with client.lock("guard", timeout=60, sleep=0.001):
        inside += 1
        most = max(most, inside)
        value = int(client.get("guarded") or 0)
        client.set("guarded", value + 1)
        inside -= 1

Together(work, 20)
assert most == 1
assert client.get("guarded") == "20"
client.close()
print("fine")
""",
        redis_server,
        "guard",
    )


def test_what_has_been_used_is_given_back(redis_server: Service) -> None:
    run_with_redis(
        """
counts = []
for repeat in range(3):
    one = redis.Redis.from_url(URL)
    assert Together(lambda number: one.echo(f"{number}"), 50).answers()[7] == b"7"
    one.close()
    counts.append(descriptors())
assert counts[2] <= counts[1], counts
print("fine")
""",
        redis_server,
        "back",
    )


def test_a_killed_tasklet_spoils_no_connection(redis_server: Service) -> None:
    run_with_redis(
        """
pool = redis.BlockingConnectionPool.from_url(URL, max_connections=20, timeout=60)
few = redis.Redis(connection_pool=pool)

def all_wait():
    return watcher.info("clients")["blocked_clients"] == 20

def kill(together):
    for one in together.tasklets:
        one.kill()

try:
    Together(lambda number: few.blpop("never", 100), 20, until=all_wait, then=kill)
except BaseExceptionGroup as group:
    assert {type(each) for each in group.exceptions} == {TaskletExit}, group
# Nobody hears an answer that was for somebody else.
answers = Together(lambda number: few.echo(f"{number}"), 100).answers()
assert answers == [f"{number}".encode() for number in range(100)]
pool.disconnect()
print("fine")
""",
        redis_server,
        "killed",
    )


def test_errors_are_those_of_redis(tmp_path: Path) -> None:
    """Its own server: it ends in the middle, and then nobody answers."""
    needs("redis")
    with servers.redis(tmp_path) as service:
        run_patched(
            CONNECT
            + """
COUNT = 50
import signal
once = redis.Redis.from_url(URL, retry=Retry(NoBackoff(), 0))
connected = redis.Redis.from_url(URL)
assert connected.ping()

def all_wait():
    return watcher.info("clients")["blocked_clients"] == COUNT

def end(together):
    os.kill(int(os.environ["PID"]), signal.SIGKILL)

def work(number):
    return raised(once.blpop, "never", 100)

together = Together(work, COUNT, until=all_wait, then=end)
assert together.answers() == ["ConnectionError"] * COUNT
together = Together(lambda number: raised(once.ping), COUNT)
assert together.answers() == ["ConnectionError"] * COUNT
once.close()
print("fine")
""",
            env={"URL": service.url, "PID": str(service.server.process.pid)},
        )
        service.server.process.wait()
