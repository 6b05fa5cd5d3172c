"""tcp-ts

 4. Only segments with the timestamps option count, and no segment with RST.
 5. A TSval is recorded if the segment consumes sequence space (payload, SYN or FIN) and the TSval is newer, modulo
    2^32, than every one before it in its direction. Pure ACKs count among those before it.
 6. The first TSval of a direction is recorded only if the segment has SYN: without it, earlier segments of the same
    tick may have passed unseen.
 7. With ACK set, the TSecr matches the other direction's pending recording of the same TSval. Older recordings of that
    direction are removed, whether a recording matches or not.
 9. A segment whose TSval is pending in its own direction, and not recorded by it, removes that recording if it repeats what
    was sent: it consumes sequence space, and does not only have new data (rule T1a), or it has no payload and begins before
    the highest end. It is a copy, and removes nothing, if it comes sooner after the recording than the lowest RTT of its
    direction so far, and than 2^20 ns. RTTs of all methods count, since the latest leg of the handshake began.
15. After time was set back (rule 14), a direction whose newest TSval is known does not record the first newer one: that
    may be the TSval of the packet that went back.
"""

from rules_base import COPY_WITHIN, Match, Pending, is_inside, is_newer

# Rule W0a: how far TSvals of about the same time may be apart.
DIFFERENCE = 2**21

class Stamps:
    """The TSvals of one direction."""

    def __init__(self, limits, room):
        self.pending = Pending(limits, room)
        self.newest = None
        self.is_next_lost = False
        # Rule T1a.
        self.has_moved = False
        self.lacking = 0

    def is_first_of_tick(self, segment):
        """Whether the segment is the first with its TSval, judged by the order of TSvals."""
        if segment.tsval is None:
            return False
        newest = self.newest
        if newest is not None and not is_newer(segment.tsval, newest):
            return False
        self.newest = segment.tsval
        if newest is None:
            return segment.is_syn()
        is_lost, self.is_next_lost = self.is_next_lost, False
        return not is_lost

    def forget(self, tsval, now, lowest_rtt):
        """Removes a recording whose segment was sent again: rule 9."""
        soonest = COPY_WITHIN if lowest_rtt is None else min(COPY_WITHIN, lowest_rtt)
        recorded_at = self.pending.waiting.get(tsval)
        if recorded_at is not None and now - recorded_at >= soonest:
            del self.pending.waiting[tsval]

    def echo(self, segment):
        """Returns the recording that a segment of the other direction echoes."""
        tsecr = segment.tsecr
        if tsecr is None or not segment.is_ack():
            return None
        freed = self.pending.free(lambda tsval: tsval == tsecr or is_newer(tsecr, tsval))
        return Match("tcp-ts", tsecr, freed[tsecr]) if tsecr in freed else None

    def differ(self, tsval):
        """Whether the newest TSval is far from another: rule W0a."""
        return None not in (self.newest, tsval) and not is_inside((DIFFERENCE, DIFFERENCE), self.newest, tsval)

    def forget_all(self):
        self.pending.waiting.clear()
        self.newest, self.is_next_lost, self.has_moved, self.lacking = None, False, False, 0

    def set_back(self):
        self.pending.set_back()
        self.miss()

    def miss(self):
        self.pending.waiting.clear()
        self.is_next_lost = self.newest is not None
