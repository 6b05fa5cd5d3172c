"""tcp-seq

All comparisons are modulo 2^32. No segment with RST counts.
S1. A segment that consumes sequence space (payload, SYN or FIN) has an end: the number after its last one. The end of another
    is its number. The first segment of a direction sets its highest end, and so does one with SYN that has another end, unless its sender has
    sent a SYN with its number before (rule 8a). Otherwise a newer end of a segment that consumes moves it. It is tracked even if the flow
    is not measured.
S2. A segment that begins before the highest end so far, or sets it again, removes all pending recordings of its own
    direction: an ACK does not say which of two equal segments it is for, and earlier ones may be acknowledged late.
S3. The end of a segment is recorded if it moved the highest end, or if it set the highest end and the segment has SYN.
S4. A segment with ACK removes the pending recordings of the other direction whose end is not newer than the ACK number.
    The newest of them matches, unless the segment has a SACK option (kind 5) of at least one block (length 10), or is
    the answer that a handshake waits for (H2).
S5. With tcp-handshake, segments with SYN are recorded neither here nor by tcp-ts (H4). When time is set back (rule 14),
    pending recordings are dropped and rate limits start again. Highest ends stay. Rule 15 has no counterpart, because
    every end belongs to one segment only.
"""

from rules_base import Match, Pending, is_newer


class Ends:
    """The sequence number ends of one direction."""

    def __init__(self, limits, room):
        self.pending = Pending(limits, room)
        self.highest = None

    def begins_below(self, segment):
        return self.highest is not None and is_newer(self.highest, segment.sequence)

    def moves(self, segment):
        """Whether a segment without SYN moves the highest end."""
        return bool(segment.consumed()) and self.highest is not None and is_newer(segment.end(), self.highest)

    def has_new_data(self, segment):
        """Whether all that a segment consumes is new (rule T1a)."""
        return not segment.is_syn() and self.moves(segment) and not self.begins_below(segment)

    def is_probe(self, segment):
        """Whether a segment without timestamps says nothing about them (rule T1a)."""
        if segment.consumed():
            return self.highest is not None and not self.moves(segment)
        return self.begins_below(segment)

    def is_sent_again(self, segment, is_copy):
        """Whether a segment repeats what was sent, or may ask for an ACK of it (rule 9)."""
        if segment.consumed() and not is_copy:
            return not self.has_new_data(segment)
        return self.begins_below(segment)

    def is_new(self, segment, direction):
        """Whether a segment's end may be recorded. Removes the recordings that it repeats."""
        if direction.is_copy(segment):
            return False
        if not segment.consumed():
            if self.highest is None:
                self.highest = segment.sequence
            return False
        end, highest = segment.end(), self.highest
        if direction.is_repeated(segment):
            self.pending.free(lambda end: True)
            return False
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
        """Returns the newest pending end that a segment of the other direction acknowledges."""
        if not segment.is_ack():
            return None
        number = segment.acknowledgment
        freed = self.pending.free(lambda end: not is_newer(end, number))
        if not freed:
            return None
        newest = min(freed, key=lambda end: (number - end) % 2**32)
        return Match("tcp-seq", newest, freed[newest])
