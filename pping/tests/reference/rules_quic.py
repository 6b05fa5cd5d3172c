"""Flows of QUIC, quic-handshake and quic-spin.

Q1. A flow begins with a client's first Initial. The flow is recognised with the first long header that has a known
    version. It is also recognised with the first that has the version of the long header before it in the flow, and a
    destination ID that is not empty and equals the source ID of the other endpoint. Before that, packets without the
    QUIC bit are packets of the flow, but change nothing else. After that, the bit does not matter.
Q2. The source ID of an endpoint is that of its latest long header. While its first long header waits for a reply, it is
    that of the first. Version negotiation counts only as a reply.
Q3. The packet that begins the flow waits for a reply.
Q4. The reply is the first long header of the other endpoint, also version negotiation and Retry, whose destination ID
    is the source ID of the packet that waits, and not empty unless the flow is recognised. It gives a sample of
    quic-handshake, and `id` is the version of the reply. If it is a Handshake or 0-RTT packet, it only ends the wait.
Q5. An Initial from the waiting endpoint more than 50 ms later ends the wait: the reply would be ambiguous.
Q5a. A client's first Initial of the endpoint that began the flow begins another connection, if its source ID is not that of
    its endpoint, or if one waits that has another destination ID. It waits as in Q3, instead of the one before.

The other rules are for quic-spin, and apply to short headers of recognised flows. Each direction has a value, the time
of its last edge, and a measure. The flow has a turn, and trust.

Q6. The first packet of a direction sets its value. A packet with another value is an edge, unless Q7 or Q8 ignores it.
    An edge sets the value and the time of the last edge, and passes the turn to the other endpoint. Before the first
    edge, either endpoint may take the turn.
Q7. Less than an eighth of the measure after the last edge of its direction, a packet is early, and is ignored. The first
    early packet of a direction since the latest edge of the flow costs 1 of trust. If the other direction has also had
    an early packet since then, both directions start over.
Q8. Otherwise, if the turn is the other endpoint's, the packet is ignored. In a believed flow, both directions forget the
    times of their last edges, which costs 4 of trust unless neither had one. In any other flow, it costs 4 of trust, and
    both directions start over.
Q9. An edge earns 1 of trust, unless either endpoint could take the turn. If its interval (Q11) is less than half of the
    measure, it costs 8 of trust instead.
Q10. Trust begins with 10, and stays from 1 to 24. From 16 on the flow is believed.
Q11. The interval of an edge begins at the last edge of its direction, if that has a time. It is a sample of quic-spin if
    the flow is believed after this edge, and if the interval is at least half of the measure so far and at most 10 s.
    `id` is the new value.
Q12. The measure is the last interval, in whole units of 1024 ns. If there was a measure before, the new one is at least
    half of it (rounded down) and at most twice.
Q13. Rate limits apply to edges as to recordings. An interval gives a sample only if the limit allowed its first edge.
Q14. A direction that starts over forgets value, last edge and measure, and either endpoint may take the turn. Both
    directions do so except for the measure if a long header changes the source ID of its endpoint, and if time is set
    back (rule 14). In the latter case, packets no longer wait for a reply.
Q15. A flow is forgotten once it has been idle for more than 60 s.
"""

from typing import NamedTuple

from rules_base import SECOND, Flow, Match, live_flow

SHORT, LONG, INITIAL, RETRY, NEGOTIATION = range(5)
IDLE = 60
SAME_FLIGHT = SECOND // 20
LONGEST_INTERVAL = 10 * SECOND
UNIT = 1024
EARLY = 8
FIRST_TRUST, LEAST_TRUST, MOST_TRUST, BELIEVED = 10, 1, 24, 16


class QuicPacket(NamedTuple):
    """The fields of a packet that the rules use. All but the first three are of long headers."""

    form: int
    spin: bool = False
    has_quic_bit: bool = True
    version: int = 0
    is_known: bool = False
    is_first: bool = False
    destination_id: bytes = b""
    source_id: bytes = b""


class Direction:
    """The packets of one endpoint."""

    def __init__(self):
        self.source_id = None
        self.waits_since = self.destination_id = None
        self.last_recording = None
        self.start_over()

    def start_over(self):
        self.measure = None
        self.forget_edges()

    def forget_edges(self):
        self.value = self.edge_at = None
        self.had_early = self.is_recorded = False

    def set_back(self):
        self.last_recording = None
        self.miss()

    def miss(self):
        self.waits_since = None
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
        # A measure of 0 counts as none.
        self.measure = units or None

    def may_record(self, now, rate):
        """Rule Q13: the limit is that of the timed direction."""
        if rate and self.last_recording is not None and now - self.last_recording < rate:
            return False
        self.last_recording = now
        return True


class QuicFlow(Flow):
    """A flow of QUIC, or of packets that may be QUIC."""

    def __init__(self, packet):
        super().__init__(packet, Direction)
        self.version = None
        self.client = packet.source
        self.is_recognised = False
        self.trust = FIRST_TRUST
        # The endpoint of the latest edge. The turn is the other endpoint's; None while either may take it.
        self.latest = None

    def idle_limit(self):
        return IDLE

    def see(self, now, second):
        before = self.newest
        super().see(now, second)
        if self.newest < before:
            self.latest = None

    def miss(self):
        self.all_forget(Direction.miss)

    def change_trust(self, by):
        self.trust = min(max(self.trust + by, LEAST_TRUST), MOST_TRUST)

    def is_believed(self):
        return self.trust >= BELIEVED

    def all_forget(self, how):
        self.latest = None
        for direction in self.directions.values():
            how(direction)


class QuicFlows:
    """All packets of QUIC."""

    def __init__(self, limits):
        self.limits, self.rate = limits, limits.rate
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
            if not packet.content.is_first:
                return []
            flow = self.flows[packet.key()] = QuicFlow(packet)
        if flow.passes_by(packet, second, self.limits):
            return []
        flow.see(packet.time, second)
        if not packet.content.has_quic_bit and not flow.is_recognised:
            return []
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
        if not flow.is_recognised and not asking.source_id:
            return []
        since, asking.waits_since = asking.waits_since, None
        return [] if packet.content.form == LONG else [Match("quic-handshake", packet.content.version, since)]

    def recognise(self, flow, packet):
        """Rule Q1."""
        content = packet.content
        answers = content.destination_id and content.destination_id == flow.direction(packet.target).source_id
        if content.is_known or answers and content.version == flow.version:
            flow.is_recognised = True
        flow.version = content.version

    def note_source(self, flow, packet, is_new):
        """Rules Q2, Q3, Q5 and Q14."""
        own, is_initial = flow.direction(packet.source), packet.content.form in (INITIAL, RETRY)
        is_other = own.source_id != packet.content.source_id
        is_other |= own.waits_since is not None and own.destination_id != packet.content.destination_id
        if packet.content.is_first and packet.source == flow.client and is_other:
            is_new, own.waits_since = True, None
            flow.direction(packet.target).waits_since = None
        if own.waits_since is not None:
            if is_initial and packet.time - own.waits_since > SAME_FLIGHT:
                own.waits_since = None
            return
        if is_new and self.has_handshake:
            own.waits_since, own.destination_id = packet.time, packet.content.destination_id
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
        least = (own.measure or 0) * UNIT // 2
        interval = max(0, now - own.edge_at) if own.edge_at is not None else least
        if flow.latest is not None:
            flow.change_trust(1 if interval >= least else -8)
        if own.edge_at is not None:
            if flow.is_believed() and own.is_recorded and least <= interval <= LONGEST_INTERVAL:
                matches = [Match("quic-spin", int(packet.content.spin), own.edge_at)]
            own.take(interval)
        flow.latest = packet.source
        own.value, own.edge_at = packet.content.spin, now
        own.is_recorded = other.may_record(now, self.rate)
        own.had_early = other.had_early = False
        return matches
