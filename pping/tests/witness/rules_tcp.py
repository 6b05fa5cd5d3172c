"""Flows of TCP, and which methods measure them. The methods are in rules_tcp_ts.py, rules_tcp_seq.py and
rules_tcp_handshake.py.

Beginning and end
 8. A SYN without ACK begins a new connection if its sender has sent a segment without SYN before, or is closed. Only the
    highest ends (S1) of the old connection are kept.
11. A direction of a TCP flow is unseen, unanswered from its first segment, open as soon as a segment without RST
    comes the other way after that, and closed after its own FIN or a RST of either.

With or without timestamps
T1. The kind of a flow is unknown at first, and again when a SYN begins a new connection. Each segment without RST may
    set the kind, before it is matched. A segment with the option makes the flow "with". A SYN without the option makes
    it "without", whatever it was. Other segments without the option count while the kind is unknown, and the third of
    both directions together makes the flow "without". If the kind changes from "with" to "without" or back, all pending
    recordings of both directions are dropped, except with `both`. A pending handshake stays.
T2. The value of `--tcp-method` decides: with `auto`, tcp-seq measures flows "without" and tcp-ts the others; with `ts`,
    only tcp-ts measures; with `seq`, only tcp-seq; with `both`, both do. With `seq` and `both`, tcp-seq measures flows
    of any kind, also unknown. A method that `--methods` does not name measures nothing. With `both`, each method has
    half of the room, and one packet can yield a sample of each.
T3. A flow begins with a segment without RST: for tcp-ts, one that has the option; for tcp-seq, one that lacks it, or any
    if tcp-seq measures flows of any kind; for tcp-handshake, one with SYN. Once a flow has begun, all its segments are
    packets of it.
"""

from typing import NamedTuple

from rules_base import Flow, live_flow
from rules_tcp_handshake import Handshake
from rules_tcp_seq import Ends
from rules_tcp_ts import Stamps

FIN, SYN, RST, ACK = 0x01, 0x02, 0x04, 0x10
# The states of a direction.
UNSEEN, UNANSWERED, OPEN, CLOSED = range(4)
IDLE_OPEN, IDLE_HALF_OPEN, IDLE_CLOSED = 300, 30, 10
# The kinds of flows.
UNKNOWN, WITH, WITHOUT = range(3)
# How many segments without timestamps make a flow "without".
WITHOUT_AFTER = 3


class Segment(NamedTuple):
    """The fields of a TCP segment that the rules use."""

    flags: int
    length: int
    tsval: int | None = None
    tsecr: int | None = None
    sequence: int = 0
    acknowledgment: int = 0
    has_sack_block: bool = False

    def is_syn(self):
        return bool(self.flags & SYN)

    def is_ack(self):
        return bool(self.flags & ACK)

    def is_rst(self):
        return bool(self.flags & RST)

    def consumed(self):
        """Returns how many sequence numbers the segment consumes."""
        return self.length + bool(self.flags & SYN) + bool(self.flags & FIN)

    def end(self):
        return (self.sequence + self.consumed()) % 2**32


class Methods:
    """Which methods measure which flows."""

    def __init__(self, limits):
        self.ts = "tcp-ts" in limits.methods and limits.tcp_method != "seq"
        self.seq = "tcp-seq" in limits.methods and limits.tcp_method != "ts"
        self.handshake = "tcp-handshake" in limits.methods
        self.is_seq_for_all = limits.tcp_method in ("seq", "both")
        self.are_both = limits.tcp_method == "both"

    def begin_flow(self, segment):
        """Rule T3."""
        if segment.is_rst():
            return False
        has_option = segment.tsval is not None
        if has_option and self.ts or self.handshake and segment.is_syn():
            return True
        return self.seq and (self.is_seq_for_all or not has_option)


class Direction:
    """One direction of a connection."""

    def __init__(self, limits):
        room = limits.pending // 2 if limits.tcp_method == "both" else limits.pending
        self.phase = UNSEEN
        self.is_past_syn = False
        self.stamps = Stamps(limits, room)
        self.ends = Ends(limits, room)
        self.handshake = Handshake()

    def set_back(self):
        self.stamps.set_back()
        self.ends.pending.set_back()
        self.handshake.end()

    def miss(self):
        self.stamps.miss()
        self.ends.pending.waiting.clear()
        self.handshake.end()


class Connection(Flow):
    """A flow of TCP."""

    kind = UNKNOWN
    segments_without = 0

    def idle_limit(self):
        phases = {direction.phase for direction in self.directions.values()}
        if OPEN in phases:
            return IDLE_OPEN
        return IDLE_HALF_OPEN if UNANSWERED in phases else IDLE_CLOSED

    def is_over_with(self, packet):
        """Whether a packet begins a new connection: rule 8."""
        sender = self.direction(packet.source)
        is_first = packet.content.flags & (SYN | ACK | RST) == SYN
        return is_first and (sender.is_past_syn or sender.phase == CLOSED)

    def settle_kind(self, segment, methods):
        """Rule T1."""
        before = self.kind
        if segment.tsval is not None:
            self.kind = WITH
        elif segment.is_syn():
            self.kind = WITHOUT
        elif self.kind == UNKNOWN:
            self.segments_without += 1
            if self.segments_without == WITHOUT_AFTER:
                self.kind = WITHOUT
        if UNKNOWN != before != self.kind and not methods.are_both:
            for direction in self.directions.values():
                direction.stamps.pending.waiting.clear()
                direction.ends.pending.waiting.clear()


class Connections:
    """All segments."""

    def __init__(self, limits):
        self.limits, self.methods = limits, Methods(limits)
        self.flows = {}

    def visit(self, packet, second):
        segment, now = packet.content, packet.time
        flow = self.flow(packet, second)
        if flow is None:
            return []
        flow.see(now, second)
        own, other = flow.direction(packet.source), flow.direction(packet.target)
        advance_phases(own, other, segment.flags)
        if segment.is_rst():
            own.handshake.end()
            other.handshake.end()
            return []
        flow.settle_kind(segment, self.methods)
        matches = self.match(other, segment, now)
        self.record(flow, own, packet)
        return matches

    def flow(self, packet, second):
        flow = live_flow(self.flows, packet, second)
        if flow is not None and flow.is_copy(packet, second):
            return None
        old = None
        if flow is not None and flow.is_over_with(packet):
            old, flow = flow, None
            del self.flows[packet.key()]
        if flow is None and self.methods.begin_flow(packet.content):
            flow = self.flows[packet.key()] = Connection(packet, lambda: Direction(self.limits))
            if old is None:
                flow.hooks.is_copy(packet)
            else:
                flow.hooks = old.hooks
                for source, direction in flow.directions.items():
                    direction.ends.highest = old.direction(source).ends.highest
        return flow

    def match(self, other, segment, now):
        """Returns the recordings of the other direction that a segment echoes."""
        leg, is_complete = other.handshake.answer(segment, now)
        stamp = other.stamps.echo(segment)
        end = other.ends.acknowledge(segment)
        if leg is not None:
            return [leg]
        if is_complete or segment.has_sack_block:
            end = None
        found = [match for match in (stamp, end) if match is not None]
        if found:
            other.handshake.end()
        return found

    def record(self, flow, own, packet):
        segment, now = packet.content, packet.time
        is_left_to_handshake = self.methods.handshake and segment.is_syn()
        if own.stamps.is_first_of_tick(segment) and segment.consumed() and self.methods.ts:
            if not is_left_to_handshake:
                own.stamps.pending.record(segment.tsval, now)
        is_measured = self.methods.seq and (self.methods.is_seq_for_all or flow.kind == WITHOUT)
        if own.ends.is_new(segment) and is_measured and not is_left_to_handshake:
            own.ends.pending.record(segment.end(), now)
        if self.methods.handshake:
            own.handshake.begin(segment, now)


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
