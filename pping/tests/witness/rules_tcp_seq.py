"""tcp-seq

All comparisons are modulo 2^32. No segment with RST counts.
S1. A segment that consumes sequence space (payload, SYN or FIN) has an end: the number after its last one. The highest
    end of a direction is set by the first such segment, and by one with SYN that has another end; else it moves to an
    end that is newer. It is known whether the flow is measured or not.
S2. One that begins before the highest end so far, or sets it again, removes all pending recordings of its own
    direction: an ACK does not say which of two equal segments it is for, and earlier ones may be acknowledged late.
S3. Its end is recorded if it moved the highest end, or if it set that and has SYN.
S4. A segment with ACK removes the pending recordings of the other direction whose end is not newer than the ACK number.
    The newest of them is the one that matches, unless the segment has a SACK option (kind 5) of at least one block
    (length 10), or is the answer that a handshake waits for (H2).
S5. With tcp-handshake, segments with SYN are recorded neither here nor by tcp-ts (H4). When time is set back (rule 14),
    pending recordings are dropped and rate limits start again; highest ends stay, and rule 15 has no counterpart, since
    every end is that of one segment only.
"""

from rules_base import Match, Pending, is_newer


class Ends:
    """The ends of one direction's segments."""

    def __init__(self, limits, room):
        self.pending = Pending(limits, room)
        self.highest = None

    def is_new(self, segment):
        """Whether a segment's end may be recorded. Removes the recordings that it repeats."""
        if not segment.consumed():
            return False
        end, highest = segment.end(), self.highest
        if highest is None or segment.is_syn() and end != highest:
            self.pending.free(lambda end: True)
            self.highest = end
            return segment.is_syn()
        if is_newer(highest, segment.sequence):
            self.pending.free(lambda end: True)
        if not is_newer(end, highest):
            return False
        self.highest = end
        return True

    def acknowledge(self, segment):
        """The newest end that a segment of the other direction acknowledges, of those that wait."""
        if not segment.is_ack():
            return None
        number = segment.acknowledgment
        freed = self.pending.free(lambda end: not is_newer(end, number))
        if not freed:
            return None
        newest = min(freed, key=lambda end: (number - end) % 2**32)
        return Match("tcp-seq", newest, freed[newest])
