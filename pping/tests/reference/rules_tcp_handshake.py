"""tcp-handshake

H1. Each direction has one leg. A segment with SYN and without RST begins it: the leg's number is the one after the SYN's
    own, and the leg waits from then on. If the leg already has that number, a waiting leg becomes void, and any other
    stays as it is. But a segment less than 2^20 ns after the one that began the leg is a copy, and changes nothing.
H2. A SYN without ACK waits for a segment of the other endpoint with SYN and ACK; a SYN with ACK waits for one with ACK
    and without SYN. The ACK number must be the leg's, or the leg's plus the payload of the SYN (RFC 7413). If it is newer
    than both, the leg ends without a sample; otherwise it changes nothing.
H3. If a waiting leg gets such an answer, it matches with its number, unless it is void. Either way it ends. A RST of
    either endpoint ends both legs, and so does time that is set back (rule 14). A sample of another method ends the leg
    of its direction, because the answer was missed. Legs take no room and have no rate limit.
H4. With tcp-handshake, no other method records segments with SYN. Their TSvals count as seen (rule 5).
H5. A segment that yields a sample of tcp-handshake yields no other sample. Other recordings that it echoes are freed.
"""

from rules_base import COPY_WITHIN, Match, is_newer


class Handshake:
    """The leg of one direction. It waits as long as an answer can come."""

    def __init__(self):
        self.number = None
        self.since = None
        self.is_waiting = self.is_void = False
        self.payload = 0
        self.is_answer = False
        # Whether the SYN was refused (rule 8b).
        self.is_proposed = False

    def begin(self, segment, now):
        """Handles a segment of this direction. Returns whether it begins the leg."""
        if not segment.is_syn():
            return False
        number = segment.number()
        if number == self.number:
            self.is_void |= now - self.since >= COPY_WITHIN
            return False
        self.number, self.since = number, now
        self.is_waiting, self.is_void = True, False
        self.payload, self.is_answer = segment.length, segment.is_ack()
        return True

    def answer(self, segment, now):
        """Handles a segment of the other direction. Returns the match or None, and whether the leg waited for it."""
        if not self.is_waiting or not segment.is_ack() or segment.is_syn() == self.is_answer:
            return None, False
        last = (self.number + self.payload) % 2**32
        if segment.acknowledgment not in (self.number, last):
            if is_newer(segment.acknowledgment, last) and is_newer(segment.acknowledgment, self.number):
                self.end()
            return None, False
        self.end()
        if self.is_void or now < self.since:
            return None, True
        return Match("tcp-handshake", self.number, self.since), True

    def waits_as_answer(self):
        """Whether it is that of a SYN-ACK, and still waits."""
        return self.is_answer and self.is_waiting and not self.is_void

    def end(self):
        self.is_waiting = self.is_proposed = False
