"""Flows of QUIC, quic-handshake and quic-spin.

Q1. A flow begins with a long header other than version negotiation. It is recognised with the first long header that is
    of a known version, or of the version of the long header before it in the flow, and to a destination ID that is not
    empty and is the source ID of the other endpoint.
Q2. The source ID of an endpoint is that of its latest long header; while its first one waits for a reply, that of the
    first.
    Version negotiation counts for nothing but as a reply.
Q3. The packet that begins the flow waits for a reply if it is an Initial, or any long header of an unknown version.
Q4. The reply is the first long header of the other endpoint, also version negotiation and Retry, whose destination ID
    is the source ID of the packet that waits. It gives a sample of quic-handshake; `id` is the version of the reply.
Q5. An Initial from the waiting endpoint more than 50 ms later ends the wait: the reply would be ambiguous.

The rest is for short headers of recognised flows, and of quic-spin. Each direction has a value, the time of its last
edge, and a measure; the flow has a turn, and trust.

Q6. The first packet of a direction sets its value. One with another value is an edge if Q7 and Q8 let it. An edge sets
    the value and the time of the last edge, and it is the other endpoint's turn. Before the first it is anyone's.
Q7. Less than an eighth of the measure after the last edge of its direction, a packet is early and left aside. The first
    early one of a direction since the latest edge of the flow costs 1 of trust. If the other direction had one since,
    too, both directions start over.
Q8. Else, if it is not its endpoint's turn, it is left aside. In a believed flow, the times of the last edges are
    forgotten in both directions, which costs 4 of trust unless neither had one. In another, it costs 4, and both start
    over.
Q9. An edge earns 1 of trust unless it was anyone's turn.
Q10. Trust begins with 10, and stays from 1 to 24. From 16 on the flow is believed.
Q11. From the last edge of its direction, if that has a time, to an edge is an interval. It is a sample of quic-spin if
    the flow is believed, this edge included, and if it is at least half of the measure so far, and at most 10 s. `id`
    is the new value.
Q12. The measure is the last interval, in whole units of 1024 ns; but at least half of what it was before (rounded
    down) and at most twice that, if there was one.
Q13. Rate limits are for edges as for recordings, and a sample is given only if the edge that its interval begins with
    was allowed.
Q14. Starting over, a direction forgets value, last edge and measure, and it is anyone's turn. The same, but for the
    measure, happens to both directions with a long header that changes the source ID of its endpoint, and when time
    is set back (rule 14). What waits for a reply is then forgotten too.
Q15. A flow is forgotten once it has been idle for more than 60 s.
"""

from typing import NamedTuple

from rules_base import SECOND, Flow, Match, live_flow

SHORT, LONG, INITIAL, NEGOTIATION = range(4)
IDLE = 60
SAME_FLIGHT = SECOND // 20
LONGEST_INTERVAL = 10 * SECOND
UNIT = 1024
EARLY = 8
FIRST_TRUST, LEAST_TRUST, MOST_TRUST, BELIEVED = 10, 1, 24, 16


class QuicPacket(NamedTuple):
    """The fields of a packet that the rules use. All but the first two are of long headers."""

    form: int
    spin: bool = False
    version: int = 0
    is_known: bool = False
    destination_id: bytes = b""
    source_id: bytes = b""


class Direction:
    """What one endpoint sends."""

    def __init__(self):
        self.source_id = None
        self.waits_since = None
        self.last_recording = None
        self.start_over()

    def start_over(self):
        self.measure = None
        self.forget_edges()

    def forget_edges(self):
        self.value = self.edge_at = None
        self.had_early = self.is_recorded = False

    def set_back(self):
        self.waits_since = self.last_recording = None
        self.forget_edges()

    def is_early(self, now):
        if self.edge_at is None or self.measure is None:
            return False
        return max(0, now - self.edge_at) < self.measure * UNIT // EARLY

    def take(self, interval):
        """Rule Q12."""
        units = interval // UNIT
        if self.measure is not None:
            units = min(max(units, self.measure // 2), 2 * self.measure)
        # A measure of nothing is none.
        self.measure = units or None

    def may_record(self, now, rate):
        """Rule Q13: rate limits are those of the direction that is timed."""
        if rate and self.last_recording is not None and now - self.last_recording < rate:
            return False
        self.last_recording = now
        return True


class Talk(Flow):
    """A flow of QUIC, or what may be."""

    def __init__(self, packet):
        super().__init__(packet, Direction)
        self.version = None
        self.is_recognised = False
        self.trust = FIRST_TRUST
        # Whose turn it is not.
        self.latest = None

    def idle_limit(self):
        return IDLE

    def see(self, now, second):
        before = self.newest
        super().see(now, second)
        if self.newest < before:
            self.latest = None

    def change_trust(self, by):
        self.trust = min(max(self.trust + by, LEAST_TRUST), MOST_TRUST)

    def is_believed(self):
        return self.trust >= BELIEVED

    def all_forget(self, how):
        self.latest = None
        for direction in self.directions.values():
            how(direction)


class Talks:
    """All packets of QUIC."""

    def __init__(self, limits):
        self.rate = limits.rate
        self.has_spin = "quic-spin" in limits.methods
        self.has_handshake = "quic-handshake" in limits.methods
        self.flows = {}

    def visit(self, packet, second):
        if not self.has_spin and not self.has_handshake:
            return []
        is_long = packet.content.form != SHORT
        flow = live_flow(self.flows, packet, second)
        is_new = flow is None
        if is_new:
            if packet.content.form not in (LONG, INITIAL):
                return []
            flow = self.flows[packet.key()] = Talk(packet)
        flow.see(packet.time, second)
        if is_long:
            matches = self.reply(flow, packet)
            if packet.content.form != NEGOTIATION:
                self.recognise(flow, packet)
                self.note_source(flow, packet, is_new)
            return matches
        return self.spin(flow, packet) if flow.is_recognised and self.has_spin else []

    def reply(self, flow, packet):
        """Rule Q4."""
        asking = flow.direction(packet.target)
        if asking.waits_since is None or packet.content.destination_id != asking.source_id:
            return []
        since, asking.waits_since = asking.waits_since, None
        return [Match("quic-handshake", packet.content.version, since)]

    def recognise(self, flow, packet):
        """Rule Q1."""
        content = packet.content
        answers = content.destination_id and content.destination_id == flow.direction(packet.target).source_id
        if content.is_known or answers and content.version == flow.version:
            flow.is_recognised = True
        flow.version = content.version

    def note_source(self, flow, packet, is_new):
        """Rules Q2, Q3, Q5 and Q14."""
        own, is_initial = flow.direction(packet.source), packet.content.form == INITIAL
        if own.waits_since is not None:
            if is_initial and packet.time - own.waits_since > SAME_FLIGHT:
                own.waits_since = None
            return
        if is_new and is_initial and self.has_handshake:
            own.waits_since = packet.time
        # An endpoint without a long header so far is like one with an empty ID.
        if (own.source_id or b"") != packet.content.source_id:
            flow.all_forget(Direction.forget_edges)
        own.source_id = packet.content.source_id

    def spin(self, flow, packet):
        """Rules Q6 to Q8."""
        own, other = flow.direction(packet.source), flow.direction(packet.target)
        value, now = packet.content.spin, packet.time
        if own.value is None:
            own.value = value
        if own.value == value:
            return []
        if own.is_early(now):
            if other.had_early:
                flow.change_trust(-1)
                flow.all_forget(Direction.start_over)
            elif not own.had_early:
                flow.change_trust(-1)
                own.had_early = True
            return []
        if flow.latest == packet.source:
            self.breach(flow, own, other)
            return []
        return self.edge(flow, packet)

    def breach(self, flow, own, other):
        """Rule Q8."""
        if not flow.is_believed():
            flow.change_trust(-4)
            flow.all_forget(Direction.start_over)
        elif own.edge_at is not None or other.edge_at is not None:
            flow.change_trust(-4)
            own.edge_at = other.edge_at = None

    def edge(self, flow, packet):
        """Rules Q9, Q11 and Q13."""
        own, other = flow.direction(packet.source), flow.direction(packet.target)
        now, matches = packet.time, []
        if flow.latest is not None:
            flow.change_trust(1)
        if own.edge_at is not None:
            interval = max(0, now - own.edge_at)
            least = (own.measure or 0) * UNIT // 2
            if flow.is_believed() and own.is_recorded and least <= interval <= LONGEST_INTERVAL:
                matches = [Match("quic-spin", int(packet.content.spin), own.edge_at)]
            own.take(interval)
        flow.latest = packet.source
        own.value, own.edge_at = packet.content.spin, now
        own.is_recorded = other.may_record(now, self.rate)
        own.had_early = other.had_early = False
        return matches
