"""The rules by which packets become samples. Their numbers are those in expected_samples.py."""

from dataclasses import dataclass
from typing import NamedTuple

SECOND = 10**9
SLOTS = 8
OVERWRITE_AFTER = 10 * SECOND
# How far time may go backwards in a flow before what waits is forgotten, and in a file before the clock is set back.
FLOW_SETBACK = 1 * SECOND
FILE_SETBACK = 60 * SECOND
# Seconds without packets after which a flow is forgotten.
IDLE_OPEN, IDLE_HALF_OPEN, IDLE_CLOSED = 300, 30, 10

FIN, SYN, RST, ACK = 0x01, 0x02, 0x04, 0x10
# What a direction of a flow may be.
UNSEEN, UNANSWERED, OPEN, CLOSED = range(4)


@dataclass(frozen=True)
class Limits:
    """What the rules leave to the user."""

    slots: int = SLOTS
    # Nanoseconds from one recording of a direction to its next.
    rate: int = 0


class Segment(NamedTuple):
    """What the rules want to know of a TCP segment."""

    flags: int
    length: int
    tsval: int | None
    tsecr: int | None


class Echo(NamedTuple):
    """What the rules want to know of an echo request or reply."""

    sequence: int
    is_request: bool


class Packet(NamedTuple):
    """A packet; one without content is not measured, but time passes with it. An endpoint is address and port."""

    time: int
    interface: str = ""
    source: tuple[str, int] | None = None
    target: tuple[str, int] | None = None
    content: Segment | Echo | None = None

    def key(self):
        return (self.interface, type(self.content), frozenset([self.source, self.target]))


class Direction:
    """One direction of a flow."""

    def __init__(self):
        self.phase = UNSEEN
        self.is_past_syn = False
        self.newest_tsval = None
        self.is_next_tsval_lost = False
        self.slots = {}
        self.last_recording = None

    def record(self, identifier, now, limits):
        if limits.rate and self.last_recording is not None and now - self.last_recording < limits.rate:
            return
        if identifier not in self.slots and len(self.slots) >= limits.slots:
            oldest = min(self.slots, key=self.slots.get)
            if now - self.slots[oldest] < OVERWRITE_AFTER:
                return
            del self.slots[oldest]
        self.slots[identifier] = now
        self.last_recording = now

    def is_first_of_tick(self, tsval, flags):
        """Whether no segment with this TSval can have passed before, in the order in which TSvals are made."""
        newest = self.newest_tsval
        if newest is not None and not is_newer(tsval, newest):
            return False
        self.newest_tsval = tsval
        if newest is None:
            return bool(flags & SYN)
        is_lost, self.is_next_tsval_lost = self.is_next_tsval_lost, False
        return not is_lost

    def set_back(self):
        self.slots.clear()
        self.last_recording = None
        self.is_next_tsval_lost = self.newest_tsval is not None


class Flow:
    """Both directions of a flow, found by the source they come from."""

    def __init__(self, packet):
        self.is_tcp = isinstance(packet.content, Segment)
        self.directions = {packet.source: Direction(), packet.target: Direction()}
        self.newest = packet.time
        self.last_second = 0

    def direction(self, source):
        return self.directions[source]

    def see(self, now, second):
        """A packet passes: rules 12 and 14."""
        self.last_second = second
        if self.newest - now > FLOW_SETBACK:
            self.newest = now
            for direction in self.directions.values():
                direction.set_back()
        self.newest = max(self.newest, now)

    def is_idle_at(self, second):
        phases = {direction.phase for direction in self.directions.values()}
        if not self.is_tcp:
            limit = IDLE_HALF_OPEN
        elif OPEN in phases:
            limit = IDLE_OPEN
        else:
            limit = IDLE_HALF_OPEN if UNANSWERED in phases else IDLE_CLOSED
        return second - self.last_second > limit


class Clock:
    """Whole seconds since the first packet of the file, by the newest."""

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
    """Whether one 32-bit timestamp is later than another (RFC 7323, section 5.2)."""
    return 0 < (value - than) % 2**32 < 2**31


def samples(packets, limits=Limits()):
    """Yields the samples in an iterable of packets."""
    flows, clock = {}, Clock()
    for packet in packets:
        second = clock.advance(packet.time)
        if packet.content is None:
            continue
        visit = visit_segment if isinstance(packet.content, Segment) else visit_echo
        found = visit(flows, packet, second, limits)
        if found is None or packet.time < found[1]:
            continue
        identifier, recorded_at = found
        yield {
            "method": "tcp-ts" if visit is visit_segment else "icmp-echo",
            "src_ip": packet.source[0],
            "src_port": packet.source[1],
            "dest_ip": packet.target[0],
            "dest_port": packet.target[1],
            "id": identifier,
            "rtt": packet.time - recorded_at,
            "recorded_at": recorded_at,
            "matched_at": packet.time,
        }


def live_flow(flows, packet, second):
    """The flow of a packet, unless there is none or it has been idle for too long."""
    flow = flows.get(packet.key())
    if flow is not None and flow.is_idle_at(second):
        del flows[packet.key()]
        return None
    return flow


def visit_segment(flows, packet, second, limits):
    flags, length, tsval, tsecr = packet.content
    flow = live_flow(flows, packet, second)
    if flow is not None and flags & (SYN | ACK | RST) == SYN:
        sender = flow.direction(packet.source)
        if sender.is_past_syn or sender.phase == CLOSED:
            del flows[packet.key()]
            flow = None
    if flow is None:
        if flags & RST or tsval is None:
            return None
        flow = flows[packet.key()] = Flow(packet)
    flow.see(packet.time, second)
    own, other = flow.direction(packet.source), flow.direction(packet.target)
    advance_phases(own, other, flags)
    if flags & RST or tsval is None:
        return None

    found = None
    if flags & ACK:
        if tsecr in other.slots:
            found = (tsecr, other.slots.pop(tsecr))
        for older in [identifier for identifier in other.slots if is_newer(tsecr, identifier)]:
            del other.slots[older]
    if own.is_first_of_tick(tsval, flags) and (length > 0 or flags & (SYN | FIN)):
        own.record(tsval, packet.time, limits)
    return found


def advance_phases(own, other, flags):
    if flags & RST:
        own.phase = other.phase = CLOSED
        return
    if other.phase == UNANSWERED:
        other.phase = OPEN
    if own.phase == UNSEEN:
        own.phase = UNANSWERED
    if flags & FIN:
        own.phase = CLOSED
    if not flags & SYN:
        own.is_past_syn = True


def visit_echo(flows, packet, second, limits):
    sequence, is_request = packet.content
    flow = live_flow(flows, packet, second)
    if flow is None:
        if not is_request:
            return None
        flow = flows[packet.key()] = Flow(packet)
    flow.see(packet.time, second)
    if is_request:
        flow.direction(packet.source).record(sequence, packet.time, limits)
        return None
    recorded_at = flow.direction(packet.target).slots.pop(sequence, None)
    return None if recorded_at is None else (sequence, recorded_at)
