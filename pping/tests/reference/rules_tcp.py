"""Flows of TCP, and which methods measure them. The methods are in rules_tcp_ts.py, rules_tcp_seq.py and
rules_tcp_handshake.py.

Beginning and end
 8. A SYN without ACK and RST begins a new connection if its number is not that of its sender's SYN or SYN-ACK before, or
    if that was refused (rule 8b). If
    its sender has sent none, it does if either endpoint has sent a segment without SYN, or its sender is closed. Nothing of the
    old connection is kept but the ends of W2.
 8a. A SYN with the same number begins a new connection only if its sender has sent a segment without SYN, or is closed, and
    one of these holds: its sender is closed, and the other has sent no SYN-ACK (it was refused); its TSval is newer than
    every one before it in its direction; one of these TSvals is missing, and it comes 10 s or more after the connection's
    first segment. A SYN or SYN-ACK with the same number that begins none is a copy if its sender has sent a segment without
    SYN. A copy is neither recorded nor does it change kind, number or end.
8b. While a direction is open, a SYN that would begin a new connection by rule 8 or 8a is refused. So is a SYN-ACK
    with another number than its sender's before, if both endpoints have sent a segment without SYN; but if it acknowledges a refused SYN of the
    other endpoint, which may not have sent another SYN since, it begins a new connection, as if that SYN came at the same
    time. A refused SYN of an endpoint whose SYN-ACK waits for its ACK (H1) is forgotten. Refused segments are neither matched nor
    recorded, and change neither phase, kind, number nor end. A RST that ends a direction, and what ends a leg of a
    handshake (H3), end the wait for the SYN-ACK; then the number of the refused SYN is forgotten, too.
8c. A RST is refused if its number is more than 65,536 from its sender's highest end (S1). If that is not known, or the
    connection is not confirmed (W0), and the other's highest end is known, the ACK number decides instead, by that; without ACK
    the RST is refused. If neither is known, it is taken.
8d. A SYN-ACK is not asked for if its ACK number is more than 65,536 from the highest end (S1) of the other endpoint, if
    that is known. Unless rule 8b has it begin a new connection, it does so if the other is closed and no direction is open;
    otherwise it is refused.
11. A direction of a TCP flow is unseen, unanswered from its first segment, open as soon as a segment without RST
    comes the other way after that, and closed after its own FIN or a RST of either.

Windows
W0. A connection is confirmed by a segment without RST whose ACK number is at most 65,536 ahead of the highest end (S1) of the
    other endpoint, if that is known, and at most 2^20 behind. Until then, W1 does not hold. Instead, a segment with neither SYN
    nor RST whose number is more than 65,536 from its sender's highest end (2^24 if the other endpoint has sent nothing), if that
    is known, replaces what is known: kind, recordings with their rate limits, TSvals and window shifts of both endpoints are
    forgotten, legs of handshakes end (H3), and it is the first segment of its sender. If it consumes nothing, its number is the
    highest end.
W0a. If the segment that confirms has the timestamps option, its TSval and TSecr are those of its sender and of the other
    endpoint. If either has a newest TSval that is more than 2^21 from that, or the kind is "unusable", then kind, TSvals and
    recordings of both endpoints are forgotten before the segment is matched.
W0b. A segment with neither SYN, RST nor ACK begins no flow, and is refused as by W1.
W0c. If an endpoint leaves its hook (rule 25), the connection is not confirmed any more, and the highest ends, TSvals and window
    shifts of both endpoints are not known.
W0d. tcp-seq gives no sample of a segment after which the connection is not confirmed.
W1. A segment with neither SYN nor RST is refused if the other endpoint has sent a segment, and its number lies outside of
    its sender's window, or its ACK number outside of the other's. A window is around the highest end (S1);
    where that is not known, no number is outside. If the latest SYN of the receiver had the window scale option (kind 3),
    it is 65,536, shifted by that (14 if it is more), behind; otherwise 2^26. Ahead it is the same, but at most 2^20.
    A refused segment advances the clock, but nothing else: it does not count for rules 24 and 25, either.
W2. The end of the latest segment that W1 refused is remembered for each direction, unless it is 0. An ACK number confirms that
    end if it is at most 2^24 ahead of it, and at most 2^30 behind. A segment whose ACK number does is taken if its own number is
    at most 65,536 from its sender's highest end. If a segment that is taken has such an ACK number, and it is
    newer than the other's highest end or outside of the other's window, packets were missed, with all that rule 25 says of it,
    and the other's highest end is the remembered one, or the ACK number, if that is more than the window before it.

With or without timestamps
T1. The kind of a flow is unknown at first, and again when a SYN begins a new connection. Each segment without RST may
    set the kind, before it is matched. A segment with the option makes the flow "with". A SYN without the option makes
    it "without", whatever it was. Other segments without the option count while the kind is unknown, and the third of
    both directions together makes the flow "without". If the kind changes from "with" to "without" or back, all pending
    recordings of both directions are dropped, except with `both`. A pending handshake stays.
T1a. With tcp-ts, a segment can make a flow "with" into one whose timestamps are "unusable". It stays so until a
    SYN begins a new connection. New data is a segment that consumes sequence space and begins at or after the highest end
    (S1). The flow becomes "unusable"
    - by the third segment in a row of one direction that lacks the option, has new data and a TSval older than the newest
      of its direction, or has a TSval that leaps. A segment with another newer TSval, or with new data and the same TSval,
      ends the row. A TSval leaps if it is ahead of the newest by more than 2^21 and one for each 512 ns since the latest
      recording of its direction by tcp-ts or tcp-seq, or since its first segment; since the first of the connection, if
      it is closed. Only a direction that is past SYN leaps. What leaps is not the newest, and is not recorded.  Keep-alives
      and what was sent before do not count: segments without payload that begin before the highest end, and segments that
      do not move it.
    - by new data 2 s or more after the first segment of its direction, if its TSval is not newer, and none was ever newer
      than the first without SYN, or mid-stream than the first. A TSval of 0 makes the direction begin at the first TSval
      again. A direction that is closed is left out.
    - by a SYN-ACK whose TSval and TSecr are 0.
    It is measured like a flow "without". All pending recordings are dropped as in T1, unless tcp-seq measures nothing.
T2. The value of `--tcp-method` decides: with `auto`, tcp-seq measures flows "without" and tcp-ts the others; with `ts`,
    only tcp-ts measures; with `seq`, only tcp-seq; with `both`, both do. With `seq` and `both`, tcp-seq measures flows
    of any kind, also unknown. A method that `--methods` does not name measures nothing. With `both`, each method has
    half of the room, and one packet can yield a sample of each.
T3. A flow begins with a segment without RST: for tcp-ts, one that has the option; for tcp-seq, one that lacks it, or any
    if tcp-seq measures flows of any kind; for tcp-handshake, one with SYN. Once a flow has begun, all its segments are
    packets of it.
"""

from typing import NamedTuple

from rules_base import SECOND, Flow, is_inside, is_newer, live_flow
from rules_tcp_handshake import Handshake
from rules_tcp_seq import Ends
from rules_tcp_ts import Stamps

FIN, SYN, RST, ACK = 0x01, 0x02, 0x04, 0x10
# The states of a direction.
UNSEEN, UNANSWERED, OPEN, CLOSED = range(4)
IDLE_OPEN, IDLE_HALF_OPEN, IDLE_CLOSED = 300, 30, 10
# The kinds of flows.
UNKNOWN, WITH, WITHOUT, UNUSABLE = range(4)
# How many segments without timestamps make a flow "without" or "unusable".
WITHOUT_AFTER = 3
# How long a clock may stand still.
STILL_CLOCK = 2 * SECOND
# When a SYN without a TSval that has the number of the one before begins a new connection.
SAME_NUMBER_AFTER = 10 * SECOND
# How far the number of a RST may be from what is expected.
RST_WITHIN = 65_536
# How large a window is taken to be that is not known.
UNKNOWN_WINDOW = 2**26
# How far numbers may be ahead, whatever the window.
MOST_AHEAD = 2**20
# Rule W2: how far an ACK number may be from the end that it confirms.
OUTSIDE = (2**24, 2**30)
# Rule W0: how far an ACK number may be that confirms a connection.
CONFIRMING = (2**16, 2**20)
# Rule W2: how far the number of a segment may be that confirms another.
NEXT = (2**16, 2**16)
# Rule W0: the same of an endpoint that alone has sent something.
ALONE = (2**24, 2**24)
MOST_SHIFT = 14
# Rule T1a: by how many ticks a TSval may advance at any time, and in how many nanoseconds by one more.
LEAP, NANOSECONDS_A_TICK = 2**21, 512


class Segment(NamedTuple):
    """The fields of a TCP segment that the rules use."""

    flags: int
    length: int
    tsval: int | None = None
    tsecr: int | None = None
    sequence: int = 0
    acknowledgment: int = 0
    has_sack_block: bool = False
    window_shift: int | None = None

    def is_syn(self):
        return bool(self.flags & SYN)

    def is_ack(self):
        return bool(self.flags & ACK)

    def is_rst(self):
        return bool(self.flags & RST)

    def is_of_no_connection(self):
        """Rule W0b."""
        return not self.flags & (SYN | RST | ACK)

    def consumed(self):
        """Returns how many sequence numbers the segment consumes."""
        return self.length + bool(self.flags & SYN) + bool(self.flags & FIN)

    def end(self):
        return (self.sequence + self.consumed()) % 2**32

    def number(self):
        return (self.sequence + 1) % 2**32


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
        if segment.is_rst() or segment.is_of_no_connection():
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
        self.first_seen = None
        # The number after that of the latest SYN or SYN-ACK.
        self.number = None
        # The window shift of the latest SYN or SYN-ACK, and the end of the latest segment outside of the window.
        self.window_shift = self.outside_end = None
        # The lowest RTT of what this direction sent.
        self.lowest = None
        self.stamps = Stamps(limits, room)
        self.ends = Ends(limits, room)
        self.handshake = Handshake()

    def propose(self, reply):
        """Sends the refused SYN that a SYN-ACK acknowledges."""
        self.phase, self.first_seen = UNANSWERED, reply.time
        self.number = self.handshake.number = self.ends.highest = reply.content.acknowledgment

    def is_confirmed(self, number):
        """Whether an ACK number confirms what is outside of the window: rule W2."""
        return self.outside_end is not None and is_inside(OUTSIDE, self.outside_end, number)

    def comes_next(self, segment):
        """Whether a segment may confirm what the other end sent: rule W2."""
        return self.ends.highest is not None and is_inside(NEXT, self.ends.highest, segment.sequence)

    def end_handshake(self):
        """Ends a leg (H3), and forgets a refused SYN (8b)."""
        if self.handshake.is_proposed:
            self.number = self.handshake.number = None
        self.handshake.end()

    def is_repeated(self, segment):
        """Whether a segment is a SYN or SYN-ACK with the number of the one before."""
        return segment.is_syn() and segment.number() == self.number and not self.handshake.is_proposed

    def is_copy(self, segment):
        return self.is_repeated(segment) and self.is_past_syn

    def has_failed(self, segment, began, now):
        """Notes a segment of a flow with timestamps. Returns whether they are unusable from now on: rule T1a."""
        stamps, ends = self.stamps, self.ends
        has_new_data = ends.has_new_data(segment)
        if segment.tsval is None:
            if ends.is_probe(segment):
                return False
            is_lacking = True
        elif self.leaps(segment, began, now):
            is_lacking = True
        elif stamps.newest is None or is_newer(segment.tsval, stamps.newest):
            if segment.flags & (SYN | ACK) == SYN | ACK and segment.tsval == segment.tsecr == 0:
                return True
            stamps.has_moved = stamps.newest is not None and self.is_past_syn and segment.tsval != 0
            is_lacking = False
        elif not has_new_data:
            return False
        else:
            is_still = not stamps.has_moved and self.phase != CLOSED
            if is_still and now - self.first_seen >= STILL_CLOCK:
                return True
            is_lacking = segment.tsval != stamps.newest
        stamps.lacking = stamps.lacking + 1 if is_lacking else 0
        return stamps.lacking == WITHOUT_AFTER

    def leaps(self, segment, began, now):
        """Rule T1a."""
        newest = self.stamps.newest
        if newest is None or not self.is_past_syn or not is_newer(segment.tsval, newest):
            return False
        first = began if self.phase == CLOSED else self.first_seen
        recordings = (self.stamps.pending.last_recording, self.ends.pending.last_recording)
        since = max(time for time in (first, *recordings) if time is not None)
        ticks = LEAP + max(now - since, 0) // NANOSECONDS_A_TICK
        return (segment.tsval - newest) % 2**32 > ticks

    def window(self, other):
        """How far what this direction sends may be ahead and behind: rule W1."""
        shift = other.window_shift
        window = UNKNOWN_WINDOW if shift is None else 65_536 << shift
        return min(window, MOST_AHEAD), window

    def forget(self):
        """Rule W0."""
        self.stamps.pending.set_back()
        self.ends.pending.set_back()
        self.end_handshake()
        self.window_shift = None

    def set_back(self):
        self.stamps.set_back()
        self.ends.pending.set_back()
        self.end_handshake()

    def miss(self):
        self.stamps.miss()
        self.ends.pending.waiting.clear()
        self.end_handshake()


class Connection(Flow):
    """A flow of TCP."""

    kind = UNKNOWN
    segments_without = 0
    is_confirmed = False

    def idle_limit(self):
        phases = {direction.phase for direction in self.directions.values()}
        if OPEN in phases:
            return IDLE_OPEN
        return IDLE_HALF_OPEN if UNANSWERED in phases else IDLE_CLOSED

    def __init__(self, packet, new_direction):
        super().__init__(packet, new_direction)
        self.began = packet.time

    def is_outside(self, packet):
        """Rules W1 and W2."""
        segment = packet.content
        own, other = self.direction(packet.source), self.direction(packet.target)
        if segment.is_of_no_connection():
            own.outside_end = segment.end() or None
            return True
        if segment.is_syn() or segment.is_rst() or other.phase == UNSEEN or not self.is_confirmed:
            return False
        highest, number = other.ends.highest, segment.acknowledgment
        is_inside_own = own.ends.highest is None or is_inside(own.window(other), own.ends.highest, segment.sequence)
        is_inside_other = (
            highest is None
            or is_inside(other.window(own), highest, number)
            or own.comes_next(segment) and other.is_confirmed(number)
        )
        if not is_inside_own or not is_inside_other:
            own.outside_end = segment.end() or None
            return True
        return False

    def replace(self, packet):
        """Rule W0, second half."""
        segment = packet.content
        own, other = self.direction(packet.source), self.direction(packet.target)
        if segment.is_syn() or segment.is_rst() or self.is_confirmed or own.ends.highest is None:
            return
        if is_inside(ALONE if other.phase == UNSEEN else NEXT, own.ends.highest, segment.sequence):
            return
        self.forget_timestamps()
        for direction in (own, other):
            direction.forget()
        own.ends.highest = None if segment.consumed() else segment.sequence

    def follow_hooks(self):
        """Rule W0c."""
        self.miss()
        self.is_confirmed = False
        for direction in self.directions.values():
            direction.ends.highest = direction.window_shift = direction.stamps.newest = None
            direction.stamps.is_next_lost = False

    def note_knowledge(self, packet):
        """Rule W0, first half."""
        segment = packet.content
        own, other = self.direction(packet.source), self.direction(packet.target)
        highest = other.ends.highest
        if self.is_confirmed or not segment.is_ack() or highest is None:
            return
        self.is_confirmed = is_inside(CONFIRMING, highest, segment.acknowledgment)
        if self.is_confirmed and segment.tsval is not None:
            differ = own.stamps.differ(segment.tsval) or other.stamps.differ(segment.tsecr)
            if differ or self.kind == UNUSABLE:
                self.forget_timestamps()

    def forget_timestamps(self):
        """Rules W0 and W0a."""
        self.kind, self.segments_without = UNKNOWN, 0
        for direction in self.directions.values():
            direction.stamps.forget_all()
            direction.ends.pending.waiting.clear()

    def confirm(self, packet):
        """Rule W2."""
        segment = packet.content
        own, other = self.direction(packet.source), self.direction(packet.target)
        highest, number = other.ends.highest, segment.acknowledgment
        is_exempt = segment.is_syn() or segment.is_rst() or not segment.is_ack() or not self.is_confirmed
        if is_exempt or other.phase == UNSEEN or highest is None:
            return
        is_elsewhere = is_newer(number, highest) or not is_inside(other.window(own), highest, number)
        if is_elsewhere and other.is_confirmed(number):
            self.miss()
            _, window = other.window(own)
            is_under_way = (other.outside_end - number) % 2**32 <= window
            other.ends.highest = other.outside_end if is_under_way else number

    def is_over_with(self, packet, methods):
        """Whether a packet begins a new connection: rules 8 and 8a."""
        segment = packet.content
        sender, other = self.direction(packet.source), self.direction(packet.target)
        if segment.flags & (SYN | ACK | RST) == SYN | ACK:
            return other.phase == CLOSED and not may_be_asked_for(segment, other)
        if segment.flags & (SYN | ACK | RST) != SYN:
            return False
        is_over = sender.is_past_syn or sender.phase == CLOSED
        if sender.number is None:
            return is_over or other.is_past_syn
        if segment.number() != sender.number or sender.handshake.is_proposed:
            return True
        if not is_over:
            return False
        if sender.phase == CLOSED and other.number is None:
            return True
        newest = sender.stamps.newest if methods.ts else None
        if None not in (segment.tsval, newest):
            return is_newer(segment.tsval, newest)
        return packet.time - self.began >= SAME_NUMBER_AFTER

    def is_open(self):
        return any(direction.phase == OPEN for direction in self.directions.values())

    def is_proposed(self, packet):
        """Whether a packet is the SYN-ACK of a refused SYN: rule 8b."""
        segment, other = packet.content, self.direction(packet.target)
        is_reply = segment.flags & (SYN | ACK | RST) == SYN | ACK
        return is_reply and other.handshake.is_proposed and other.number == segment.acknowledgment

    def refuses(self, packet, methods):
        """Rules 8b and 8c."""
        segment = packet.content
        own, other = self.direction(packet.source), self.direction(packet.target)
        if segment.is_rst():
            return not takes_reset(own.ends.highest, other.ends.highest, self.is_confirmed, segment)
        is_reply = segment.flags & (SYN | ACK) == SYN | ACK
        is_unasked = is_reply and not self.is_proposed(packet)
        if is_unasked and not may_be_asked_for(segment, other) and (other.phase != CLOSED or self.is_open()):
            return True
        if not self.is_open():
            return False
        if self.is_over_with(packet, methods):
            if methods.handshake and own.handshake.waits_as_answer():
                return True
            own.handshake.end()
            own.number, own.handshake.number = segment.number(), segment.number()
            own.handshake.is_proposed = True
            return True
        return is_unasked and not own.is_repeated(segment) and own.is_past_syn and other.is_past_syn

    def settle_kind(self, own, packet, methods):
        """Rules T1 and T1a."""
        segment, before = packet.content, self.kind
        if before == UNUSABLE or own.is_copy(segment):
            return
        if before == WITH and (segment.tsval is not None or not segment.is_syn()):
            if methods.ts and own.has_failed(segment, self.began, packet.time):
                self.kind = UNUSABLE
        elif segment.tsval is not None:
            self.kind = WITH
            for direction in self.directions.values():
                direction.stamps.has_moved, direction.stamps.lacking = False, 0
        elif segment.is_syn():
            self.kind = WITHOUT
        elif self.kind == UNKNOWN:
            self.segments_without += 1
            if self.segments_without == WITHOUT_AFTER:
                self.kind = WITHOUT
        is_other_method = self.kind != UNUSABLE or methods.seq
        if UNKNOWN != before != self.kind and not methods.are_both and is_other_method:
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
        if flow.refuses(packet, self.methods):
            return []
        flow.replace(packet)
        flow.confirm(packet)
        own, other = flow.direction(packet.source), flow.direction(packet.target)
        if own.phase == UNSEEN:
            own.first_seen = now
        advance_phases(own, other, segment.flags)
        if segment.is_rst():
            own.end_handshake()
            other.end_handshake()
            return []
        flow.note_knowledge(packet)
        flow.settle_kind(own, packet, self.methods)
        own.is_past_syn |= not segment.is_syn()
        matches = self.match(other, segment, now, flow.is_confirmed)
        self.record(flow, own, packet)
        return matches

    def flow(self, packet, second):
        flow = live_flow(self.flows, packet, second)
        if flow is not None and flow.passes_by(packet, second, self.limits):
            return None
        old = proposer = None
        if flow is not None and flow.is_proposed(packet):
            proposer, old, flow = packet.target, flow, None
        elif flow is not None and not flow.is_open() and flow.is_over_with(packet, self.methods):
            old, flow = flow, None
        if old is not None:
            del self.flows[packet.key()]
        if flow is None and self.methods.begin_flow(packet.content):
            flow = self.flows[packet.key()] = Connection(packet, lambda: Direction(self.limits))
            if old is None:
                flow.hooks.count(packet)
            else:
                flow.hooks = old.hooks
                for source, direction in flow.directions.items():
                    direction.outside_end = old.direction(source).outside_end
            if proposer is not None:
                flow.direction(proposer).propose(packet)
        return flow

    def match(self, other, segment, now, is_confirmed):
        """Returns the recordings of the other direction that a segment echoes: see W0d, too."""
        leg, is_complete = other.handshake.answer(segment, now)
        stamp = other.stamps.echo(segment)
        end = other.ends.acknowledge(segment)
        if is_complete or segment.has_sack_block or not is_confirmed:
            end = None
        found = [match for match in (stamp, end) if match is not None]
        if leg is not None:
            found = [leg]
        elif found:
            other.end_handshake()
        rtts = [now - match.recorded_at for match in found if now >= match.recorded_at]
        if rtts:
            other.lowest = min(rtts + ([] if other.lowest is None else [other.lowest]))
        return found

    def record(self, flow, own, packet):
        segment, now = packet.content, packet.time
        is_left_to_handshake = self.methods.handshake and segment.is_syn()
        is_by_seq = self.methods.seq and (self.methods.is_seq_for_all or flow.kind in (WITHOUT, UNUSABLE))
        if self.methods.ts and (self.methods.are_both or not is_by_seq) and segment.tsval is not None:
            leaps = flow.kind == WITH and own.stamps.lacking
            if not leaps and own.stamps.is_first_of_tick(segment) and segment.consumed() and not is_left_to_handshake:
                own.stamps.pending.record(segment.tsval, now)
            elif own.ends.is_sent_again(segment, own.is_copy(segment)):
                own.stamps.forget(segment.tsval, now, own.lowest)
        if own.ends.is_new(segment, own) and is_by_seq and not is_left_to_handshake:
            own.ends.pending.record(segment.end(), now)
        if self.methods.handshake and own.handshake.begin(segment, now):
            own.lowest = None
        if segment.is_syn():
            if not own.is_copy(segment):
                own.window_shift = segment.window_shift
            own.number = segment.number()


def is_near(end, number):
    return min((number - end) % 2**32, (end - number) % 2**32) <= RST_WITHIN


def may_be_asked_for(segment, other):
    """Rule 8d. Whether `other` may have sent the SYN of a SYN-ACK."""
    return other.ends.highest is None or is_near(other.ends.highest, segment.acknowledgment)


def takes_reset(own, other, is_confirmed, segment):
    """Rule 8c. `own` and `other` are the highest ends, or None."""
    if own is not None and (is_confirmed or other is None):
        return is_near(own, segment.sequence)
    return other is None or segment.is_ack() and is_near(other, segment.acknowledgment)


def advance_phases(own, other, flags):
    if flags & RST:
        own.phase = other.phase = CLOSED
        own.is_past_syn |= not flags & SYN
        return
    if other.phase == UNANSWERED:
        other.phase = OPEN
    if own.phase == UNSEEN:
        own.phase = UNANSWERED
    if flags & FIN:
        own.phase = CLOSED
