"""Every interleaving of a few threads in the protocol of `threads/waiting/lock.c`.

A stress test meets the bad schedule by luck; this walks through all of them.  One step is one
access to what other threads can change without the guard: the lock's word, a waiter's state, a
futex.  What is touched only under the guard needs no step of its own: taking the guard moves
together with the access after it, giving it back with the one before.

Choices that depend on time are choices of the walk: whether a waiter starves, when a dead line
passes, when a signal comes.  So the protocol holds whatever the clock says.  Polling is left out:
it only looks at the state, as the step before sleeping does.  fork is left out too, and so is where
in the queue one stands again that was interrupted: at the head.

A signal handler runs in the midst of the wait.  It raises, which ends that, or takes and releases
the same lock, for which it may have to wait as well.

Found are: two owners; a state that nobody can leave although somebody waits (a lost wake-up); and
at the end, with nobody left, anything that is not as new: a SLOW that stays slows each release.
"""

# ruff: noqa: ARG002 (all steps have the same arguments)

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum

LOCKED, SLOW = 1, 2
WAITING, ASLEEP, WOKEN, GRANTED = range(4)
NOBODY = -1


class Kind(Enum):
    """What can end a thread's waits."""

    PLAIN = "only the lock"
    TIMED = "a time-out"
    HANDLING = "a signal"


class Mutation(Enum):
    """Mistakes that the walk has to find."""

    NONE = "none"
    RELEASE_IGNORES_SLOW = "a release looks at LOCKED only and never goes through the guard"
    LOOK_BEFORE_GUARD = "a waiter looks at LOCKED, then takes the guard and queues"
    QUEUE_WITHOUT_SLOW = "a waiter queues and leaves SLOW as it is"
    SLEEP_UNCHECKED = "a waiter goes to sleep without a look at its state"
    NO_ROUSE = "whoever ends a wait takes the sleeper for awake"
    TIME_OUT_DROPS_WOKEN = "a dead line that passes wins over a wake-up"
    INTERRUPT_DROPS_WOKEN = "handlers run in a thread that was woken, as if it had not been"
    INTERRUPT_DROPS_GRANTED = "handlers run in a thread that the lock was handed over to"
    QUEUED_WHILE_HANDLING = "a waiter stays in the queue while handlers run"
    BACK_WITHOUT_SLOW = "one that was interrupted queues again and leaves SLOW as it is"
    BACK_UNCHECKED = "one that was interrupted queues again without a look at LOCKED"
    WOKEN_STAYS = "a waiter that is back does not say so"
    SETTLE_IGNORES_QUEUE = "SLOW goes while others wait"
    HAND_OVER_FREES = "a release hands the lock over and frees it as well"


# Each state that was seen, with the one before it and the thread and step that led from there.
Key = tuple[object, ...]
Seen = dict[Key, tuple[Key, tuple[int, str]] | None]


@dataclass(slots=True)
class Thread:
    """One thread: where it is, and what only it and its waker touch."""

    at: str = "start"
    rounds: int = 1
    state: int = WAITING
    roused: bool = False
    sleeper: int = NOBODY  # to rouse, at the end of a release
    handed: bool = False  # the release under way hands over
    taken: bool = False  # the try after a wake-up
    again: bool = False  # has queued in this acquisition before
    signalled: bool = False  # one signal for each acquisition: else the walk would not end
    nested: bool = False  # this acquisition is a handler's
    outer: int = WAITING  # the state of the wait around it, if that is queued still

    def key(self) -> Key:
        return (
            self.at, self.rounds, self.state, self.roused, self.sleeper, self.handed, self.taken,
            self.again, self.signalled, self.nested, self.outer,
        )  # fmt: skip


@dataclass(slots=True)
class State:
    """All of it at one moment."""

    threads: list[Thread]
    word: int = 0
    guard: int = NOBODY
    queue: list[int] = field(default_factory=list)
    woken: int = 0
    owner: int = NOBODY  # what the walk knows, not the protocol
    gil: int = NOBODY

    def key(self) -> Key:
        return (
            self.word, self.guard, tuple(self.queue), self.woken, self.owner, self.gil,
            *[thread.key() for thread in self.threads],
        )  # fmt: skip

    def copy(self) -> "State":
        return State(
            [Thread(*thread.key()) for thread in self.threads],  # type: ignore[arg-type]
            self.word, self.guard, self.queue.copy(), self.woken, self.owner, self.gil,
        )  # fmt: skip


def schedule(seen: Seen, key: Key) -> list[tuple[int, str]]:
    """How the walk came to this state: thread and step."""
    result: list[tuple[int, str]] = []
    while (came := seen[key]) is not None:
        key = came[0]
        result.append(came[1])
    return result[::-1]


class ProtocolError(Exception):
    """What went wrong, and how it came to it: thread and step."""

    schedule: Sequence[tuple[int, str]] = ()

    def __str__(self) -> str:
        return f"{self.args[0]}\n" + " ".join(f"{me}:{step}" for me, step in self.schedule)


# Steps without the GIL.  All others take it unless they have it, and keep it ...
WITHOUT_GIL = frozenset({"wait", "to_kernel", "kernel", "awake", "awake_late", "finish", "give_up"})
# ... until the thread waits, or runs Python code: there it may lose it.
GIVES_GIL_UP = frozenset({"start", "section", "handler", "wait", "done"})

# Steps that take the guard; the claim, and a release after its first step, have it already.
GUARDED = frozenset({"queue", "finish", "give_up", "interrupt", "back", "release_slowly"})

# Steps that change nothing.
NEXT = {"kernel": "awake", "time_out": "awake_late", "raise": "over"}


@dataclass(frozen=True)
class Model:
    """The protocol for threads of these kinds, each acquiring `rounds` times.

    gil: whether one is held where lock.h says so.  Then a change of a word without SLOW is a look
    and a store, as with PLUS_LOCK_UNDER_GIL; without a GIL it is one compare-and-swap.
    """

    kinds: tuple[Kind, ...]
    rounds: tuple[int, ...]
    gil: bool = field(kw_only=True)
    mutation: Mutation = field(default=Mutation.NONE, kw_only=True)

    # --- acquiring

    def take(self, s: State, me: int) -> None:
        if s.owner != NOBODY:
            raise ProtocolError("two threads have the lock")
        s.word |= LOCKED
        s.owner = me

    def step_start(self, s: State, me: int) -> str:
        t = s.threads[me]
        t.again = t.signalled = t.taken = False
        return self.step_try(s, me)

    def step_try(self, s: State, me: int) -> str:
        t = s.threads[me]
        interrupted = t.again and not t.nested
        if s.word & LOCKED or (interrupted and self.mutation is Mutation.BACK_UNCHECKED):
            return "queue"
        return "store" if self.gil and s.word == 0 else self.step_store(s, me)

    def step_store(self, s: State, me: int) -> str:
        if self.gil and s.threads[me].at == "store" and s.word != 0:
            raise ProtocolError("the word changed between the look and the store of a try")
        self.take(s, me)
        return "section"

    def step_queue(self, s: State, me: int) -> str:
        t = s.threads[me]
        interrupted = t.again and t.signalled and not t.nested
        unchecked = self.mutation is Mutation.LOOK_BEFORE_GUARD or (
            interrupted and self.mutation is Mutation.BACK_UNCHECKED
        )
        if not s.word & LOCKED and not unchecked:
            s.guard = me
            return "claim"
        if self.mutation is not Mutation.QUEUE_WITHOUT_SLOW and not (
            interrupted and self.mutation is Mutation.BACK_WITHOUT_SLOW
        ):
            s.word |= SLOW
        s.queue.insert(0 if t.again else len(s.queue), ~me if t.nested else me)
        t.again = True
        t.state = WAITING
        return "wait"

    def step_claim(self, s: State, me: int) -> str:
        s.woken = 1
        s.word |= SLOW
        s.guard = NOBODY
        return "retry"

    # --- waiting

    def step_wait(self, s: State, me: int) -> str:
        t = s.threads[me]
        if t.state < WOKEN:
            t.state = ASLEEP
        elif self.mutation is not Mutation.SLEEP_UNCHECKED:
            return "finish"
        t.roused = False
        return "to_kernel"

    def step_to_kernel(self, s: State, me: int) -> str:
        unchecked = self.mutation is Mutation.SLEEP_UNCHECKED
        return "kernel" if unchecked or s.threads[me].state == ASLEEP else "awake"

    def step_signal(self, s: State, me: int) -> str:
        s.threads[me].signalled = True
        return "awake"

    def step_awake_late(self, s: State, me: int) -> str:
        t = s.threads[me]
        if t.state == ASLEEP:
            t.state = WAITING
        return "finish"

    def step_awake(self, s: State, me: int) -> str:
        self.step_awake_late(s, me)
        t = s.threads[me]
        return "interrupt" if t.signalled and not t.nested and t.state < WOKEN else "wait"

    def step_finish(self, s: State, me: int) -> str:
        t = s.threads[me]
        if t.state == GRANTED:
            return "section"
        if t.state == WOKEN:
            dropped = self.mutation is Mutation.TIME_OUT_DROPS_WOKEN
            return "give_up" if dropped and self.kinds[me] is Kind.TIMED else "retry"
        s.queue.remove(~me if t.nested else me)
        return "give_up"

    def step_interrupt(self, s: State, me: int) -> str:
        t = s.threads[me]
        if t.state == GRANTED and self.mutation is not Mutation.INTERRUPT_DROPS_GRANTED:
            return "section"
        if t.state == WOKEN and self.mutation is not Mutation.INTERRUPT_DROPS_WOKEN:
            return "retry"
        if t.state < WOKEN and self.mutation is not Mutation.QUEUED_WHILE_HANDLING:
            s.queue.remove(me)
        return "handler"

    def step_take(self, s: State, me: int) -> str:
        """The handler takes the lock."""
        t = s.threads[me]
        t.nested, t.outer, t.again = True, t.state, False
        return self.step_try(s, me)

    def step_handled(self, s: State, me: int) -> str:
        """The handler is over, and the wait goes on."""
        t = s.threads[me]
        t.nested, t.state, t.outer, t.again = False, t.outer, WAITING, True
        if self.mutation is Mutation.QUEUED_WHILE_HANDLING:
            return "wait"
        return self.step_try(s, me)

    def step_give_up(self, s: State, me: int) -> str:
        self.settle(s)
        return "over"

    def step_retry(self, s: State, me: int) -> str:
        t = s.threads[me]
        t.taken = not s.word & LOCKED
        if t.taken:
            self.take(s, me)
        return "back"

    def step_back(self, s: State, me: int) -> str:
        t = s.threads[me]
        if self.mutation is not Mutation.WOKEN_STAYS:
            s.woken = 0
        self.settle(s)
        return "section" if t.taken else "queue"

    # --- releasing

    def free(self, s: State, me: int) -> None:
        if s.owner != me:
            raise ProtocolError("a thread frees the lock of another")
        s.owner = NOBODY

    def step_release(self, s: State, me: int) -> str:
        if s.word != LOCKED and self.mutation is not Mutation.RELEASE_IGNORES_SLOW:
            return "release_slowly"
        return "release_store" if self.gil else self.step_release_store(s, me)

    step_section = step_release

    def step_release_store(self, s: State, me: int) -> str:
        if s.word != LOCKED and self.mutation is not Mutation.RELEASE_IGNORES_SLOW:
            raise ProtocolError("the word changed between the look and the store of a release")
        self.free(s, me)
        s.word &= ~LOCKED
        return "over"

    def end(self, s: State, me: int, state: int) -> int:
        node = s.queue.pop(0)
        first = max(node, ~node)
        t = s.threads[first]
        if node >= 0 and t.nested:
            t.outer = state  # it is in a handler, which has a wait of its own
            return first
        s.threads[me].sleeper = first if t.state == ASLEEP else NOBODY
        t.state = state
        return first

    def step_release_slowly(self, s: State, me: int) -> str:
        s.guard = me
        s.threads[me].handed = False
        if s.queue and s.woken == 0:
            s.woken = 1
            self.end(s, me, WOKEN)
        return "release_settle"

    def step_hand_over(self, s: State, me: int) -> str:
        s.guard = me
        s.threads[me].handed = True
        self.free(s, me)
        s.owner = self.end(s, me, GRANTED)
        return "release_settle"

    def settle(self, s: State) -> None:
        ignored = self.mutation is Mutation.SETTLE_IGNORES_QUEUE
        if s.woken == 0 and (ignored or not s.queue):
            s.word &= ~SLOW

    def step_release_settle(self, s: State, me: int) -> str:
        self.settle(s)
        if s.threads[me].handed and self.mutation is not Mutation.HAND_OVER_FREES:
            s.guard = NOBODY
            return "rouse"
        return "release_free"

    def step_release_free(self, s: State, me: int) -> str:
        if not s.threads[me].handed:
            self.free(s, me)
        s.word &= ~LOCKED
        s.guard = NOBODY
        return "rouse"

    def step_rouse(self, s: State, me: int) -> str:
        t = s.threads[me]
        if t.sleeper != NOBODY and s.threads[t.sleeper].at == "kernel":
            s.threads[t.sleeper].roused = self.mutation is not Mutation.NO_ROUSE
        t.sleeper = NOBODY
        return "over"

    def step_over(self, s: State, me: int) -> str:
        t = s.threads[me]
        if t.nested:
            return self.step_handled(s, me)
        t.rounds -= 1
        t.state = WAITING
        return "start" if t.rounds > 0 else "done"

    # --- the walk

    def choices(self, s: State, me: int) -> list[str]:
        """The steps that the thread can do now."""
        t = s.threads[me]
        if t.at == "done" or not self.may_run(s, me):
            return []
        if t.at == "kernel":
            return self.wake_ups(t, self.kinds[me])
        if t.at == "handler":
            # The fault of old was not one of handlers that raise.
            return ["take"] + ["raise"] * (self.mutation is not Mutation.QUEUED_WHILE_HANDLING)
        if t.at == "release_slowly" and s.queue:
            return ["release_slowly", "hand_over"]
        return [t.at]

    def may_run(self, s: State, me: int) -> bool:
        at = s.threads[me].at
        if at in GUARDED and s.guard != NOBODY:
            return False
        return not (self.gil and at not in WITHOUT_GIL and s.gil not in {NOBODY, me})

    def wake_ups(self, t: Thread, kind: Kind) -> list[str]:
        timed, heeds = kind is Kind.TIMED, kind is Kind.HANDLING and not t.signalled
        return ["kernel"] * t.roused + ["time_out"] * timed + ["signal"] * heeds

    def after(self, s: State, me: int, step: str) -> State:
        """The state after the step."""
        result = s.copy()
        at: str = NEXT.get(step) or getattr(self, f"step_{step}")(result, me)
        if self.gil and s.threads[me].at not in WITHOUT_GIL:
            result.gil = NOBODY if at in GIVES_GIL_UP else me
        result.threads[me].at = at
        return result

    def check_end(self, s: State) -> None:
        if any(t.at != "done" for t in s.threads):
            raise ProtocolError(f"a wake-up was lost: {[t.at for t in s.threads]}")
        if (s.word, s.queue, s.woken) != (0, [], 0):
            raise ProtocolError(f"not as new: word {s.word}, queue {s.queue}, woken {s.woken}")

    def walk(self) -> int:
        """Go through all interleavings: the number of states, or ProtocolError."""
        first = State([Thread(rounds=n) for n in self.rounds])
        seen: Seen = {first.key(): None}
        open_states = [first]
        while open_states:
            s = open_states.pop()
            key = s.key()
            last: tuple[int, str] | None = None
            moves = [(me, c) for me in range(len(self.kinds)) for c in self.choices(s, me)]
            try:
                if not moves:
                    self.check_end(s)
                for last in moves:
                    new = self.after(s, *last)
                    if (new_key := new.key()) not in seen:
                        seen[new_key] = (key, last)
                        open_states.append(new)
            except ProtocolError as error:
                error.schedule = [*schedule(seen, key), *([last] if last else [])]
                raise
        return len(seen)
