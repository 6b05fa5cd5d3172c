"""The rules that all families share: limits, packets, pending recordings, flows and the clock.

In general
 1. A packet is first matched with the pending recordings of the other direction, then recorded in its own.
 2. A match yields one sample and removes the recording. If the echo is older than the recording, there is no sample.
 3. If no more recordings can be pending, the oldest is overwritten if it is at least 10 s old; otherwise nothing is
    recorded. A rate limit applies to recordings: one per direction and method in that time.

End of a flow
12. A flow is forgotten once it has been idle for more than 300 s if a direction is open, 10 s if both are closed or
    unseen, and 30 s otherwise (also for echoes).
13. Idle times are differences between seconds of a clock. The clock shows the whole seconds from the first packet of the
    file to the newest so far, of any kind.

Time that goes backwards
14. If a packet is more than 1 s older than the newest of its flow, all pending recordings of the flow are dropped, its
    time is the newest from then on, and rate limits start again.
16. If a packet is more than 60 s older than the newest of the file, the clock of rule 13 continues from there: it keeps
    the whole seconds that it shows, and that packet replaces both the first and the newest.

Hooks
24. A capture may say for each packet whether it came in or went out. The first such packet binds its sender to that
    direction in a flow. Later packets of that sender in the other direction are copies: they are packets of the flow
    and advance the clock, but nothing else. A packet that does not say ends the binding, and is no copy.
25. A sender leaves its direction if it had copies in a flow, and no other packet in the last second of the clock (rule 13)
    in which the flow had one, nor since a copy. From the next second on in which the flow has a packet, it is bound to the other
    direction; but if both senders are bound, to different directions, this waits until both leave. Then all pending recordings of the flow are
    dropped, as after packets that were missed, and legs of handshakes end; the next TSval of a direction may not be the
    first of its tick (rule 15).
26. With two arms, the ends of a flow are on different sides. A packet whose sender is bound to the same direction as the
    other end, which has had a packet that was no copy, is a packet of the flow and binds its sender, but changes nothing
    else. That ends once both senders have had a copy.

Left out: a flow that is not proved may also be evicted, once 2048 other flows of its source's ring (an eighth of an eighth
of the table's capacity, 131072) have begun after it. No capture here has that many flows.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

SECOND = 10**9
PENDING = 8
OVERWRITE_AFTER = 10 * SECOND
# How soon a segment passes again if it is a copy, and not a retransmission.
COPY_WITHIN = 2**20
# How far time may go backwards: in a flow, before pending recordings are dropped; in a file, before the clock is set
# back.
FLOW_SETBACK = 1 * SECOND
FILE_SETBACK = 60 * SECOND

# The methods in the order of their numbers.
METHODS = ("tcp-ts", "icmp-echo", "tcp-seq", "tcp-handshake", "dns", "quic-spin", "quic-handshake")
TCP_METHODS = ("auto", "ts", "seq", "both")


@dataclass(frozen=True)
class Limits:
    """The options of the rules."""

    pending: int = PENDING
    # The least time between two recordings of a direction, in nanoseconds.
    rate: int = 0
    methods: tuple[str, ...] = METHODS
    tcp_method: str = "auto"
    arms: str = "one"


class Packet(NamedTuple):
    """A packet. One without content is not measured, but advances the clock. An endpoint is an address and a port."""

    time: int
    interface: str = ""
    source: tuple[str, int] | None = None
    target: tuple[str, int] | None = None
    content: Any = None
    # Whether it went out; None if the capture does not say.
    is_outgoing: bool | None = None

    def key(self):
        return (self.interface, frozenset([self.source, self.target]))


class Match(NamedTuple):
    """The recording that a packet echoes."""

    method: str
    identifier: int
    recorded_at: int


class Pending:
    """The pending recordings of one direction by one method."""

    def __init__(self, limits, room):
        self.rate, self.room = limits.rate, room
        # Identifiers with the times when they were seen.
        self.waiting = {}
        self.last_recording = None

    def record(self, identifier, now):
        if self.rate and self.last_recording is not None and now - self.last_recording < self.rate:
            return
        if identifier not in self.waiting and len(self.waiting) >= self.room:
            oldest = min(self.waiting, key=self.waiting.get)
            if now - self.waiting[oldest] < OVERWRITE_AFTER:
                return
            del self.waiting[oldest]
        self.waiting[identifier] = now
        self.last_recording = now

    def free(self, is_freed):
        """Removes the identifiers for which `is_freed` holds, and returns them with their times."""
        freed = {identifier: time for identifier, time in self.waiting.items() if is_freed(identifier)}
        for identifier in freed:
            del self.waiting[identifier]
        return freed

    def set_back(self):
        self.waiting.clear()
        self.last_recording = None


class Hooks:
    """The direction that each sender of a flow is bound to: rules 24 and 25."""

    def __init__(self):
        self.bound = {}
        # The senders that ever had a copy.
        self.forwarded = set()
        # The senders that had packets in this second, and those that had copies and may leave.
        self.counted, self.copied = set(), set()

    def move(self):
        """Begins a second. Returns whether any sender moves."""
        leaving = self.copied - self.counted
        self.counted, self.copied = set(), set()
        if len(leaving) == 1 and len(set(self.bound.values())) == 2:
            self.copied = leaving
            return False
        for source in leaving:
            self.bound[source] = not self.bound[source]
        return bool(leaving)

    def is_copy(self, packet):
        bound = self.bound.get(packet.source)
        if None in (bound, packet.is_outgoing) or bound == packet.is_outgoing:
            return False
        self.copied.add(packet.source)
        self.forwarded.add(packet.source)
        return True

    def is_on_one_side(self, packet):
        """Rule 26."""
        bound = self.bound.get(packet.target)
        return bound is not None and bound == packet.is_outgoing and len(self.forwarded) < 2

    def count(self, packet):
        if packet.is_outgoing is None:
            self.bound.pop(packet.source, None)
        else:
            self.bound[packet.source] = packet.is_outgoing
        self.counted.add(packet.source)


class Flow:
    """Both directions of a flow, by their source. Each family of methods has its own kind of direction."""

    def __init__(self, packet, new_direction):
        self.directions = {packet.source: new_direction(), packet.target: new_direction()}
        self.newest = packet.time
        self.last_second = 0
        self.hooks = Hooks()

    def direction(self, source):
        return self.directions[source]

    def see(self, now, second):
        """Notes that a packet passes: rules 12 and 14."""
        self.last_second = second
        if self.newest - now > FLOW_SETBACK:
            self.newest = now
            for direction in self.directions.values():
                direction.set_back()
        self.newest = max(self.newest, now)

    def passes_by(self, packet, second, limits):
        """Rules 24 to 26. Whether a packet is a copy, or refused. Notes that it passes."""
        if second != self.last_second and self.hooks.move():
            self.follow_hooks()
        if self.hooks.is_copy(packet) or self.is_outside(packet):
            self.see(packet.time, second)
            return True
        self.hooks.count(packet)
        if limits.arms == "two" and self.hooks.is_on_one_side(packet):
            self.see(packet.time, second)
            return True
        return False

    def is_outside(self, packet):
        """Whether a packet cannot belong to the flow."""
        return False

    def follow_hooks(self):
        """Notes that an endpoint leaves its hook: rule 25."""
        self.miss()

    def miss(self):
        """Drops what is pending, because packets were missed."""
        for direction in self.directions.values():
            direction.miss()

    def idle_limit(self):
        """Returns after how many idle seconds the flow is forgotten."""
        raise NotImplementedError


def live_flow(flows, packet, second):
    """Returns the flow of a packet, unless it has none or it has been idle for too long."""
    flow = flows.get(packet.key())
    if flow is not None and second - flow.last_second > flow.idle_limit():
        del flows[packet.key()]
        return None
    return flow


class Clock:
    """Whole seconds from the first packet of the file to the newest."""

    def __init__(self):
        self.origin = self.newest = None
        self.seconds_before_origin = 0

    def advance(self, now):
        if self.origin is None:
            self.origin = self.newest = now
        elif self.newest - now > FILE_SETBACK:
            self.seconds_before_origin = self.seconds()
            self.origin = self.newest = now
        self.newest = max(self.newest, now)
        return self.seconds()

    def seconds(self):
        return self.seconds_before_origin + (self.newest - self.origin) // SECOND


def is_newer(value, than):
    """Whether a 32-bit number comes after another: a timestamp (RFC 7323, section 5.2) or a sequence number."""
    return 0 < (value - than) % 2**32 < 2**31


def is_inside(window, highest, number):
    """Whether a 32-bit number is at most so far ahead and behind."""
    ahead, behind = window
    return (number - highest + behind) % 2**32 <= ahead + behind
