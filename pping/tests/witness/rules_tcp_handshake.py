"""tcp-handshake

H1. Each direction has one leg. A segment with SYN and without RST begins it: its number is the one after the SYN's own,
    and it waits from then on. If the leg already has that number, it is void if it waits, and stays as it is if not.
H2. What a SYN without ACK waits for is a segment of the other endpoint with SYN and ACK; a SYN with ACK waits for one
    with ACK and without SYN. The ACK number must be the leg's, or that and the payload of the SYN (RFC 7413). If it is
    newer than both, the leg is over without a sample; else it changes nothing.
H3. A leg that waits and is answered so matches, with its number; one that is void does not. It is over then. A RST of
    either endpoint ends both legs, and so does time that is set back (rule 14); a sample of another method ends the leg of
    its direction, whose answer was missed then. Legs take no room and have no rate limit.
H4. With tcp-handshake, segments with SYN are recorded by no other method. Their TSvals count as seen (rule 5).
H5. A segment that yields a sample of tcp-handshake yields no other. What else it echoes is freed.
"""

from rules_base import Match, is_newer


class Handshake:
    """The leg of one direction. It waits as long as there is an answer to wait for."""

    def __init__(self):
        self.number = None
        self.since = None
        self.is_waiting = self.is_void = False
        self.payload = 0
        self.is_answer = False

    def begin(self, segment, now):
        """A segment of this direction."""
        if not segment.is_syn():
            return
        number = (segment.sequence + 1) % 2**32
        if number == self.number:
            self.is_void = True
            return
        self.number, self.since = number, now
        self.is_waiting, self.is_void = True, False
        self.payload, self.is_answer = segment.length, segment.is_ack()

    def answer(self, segment, now):
        """A segment of the other direction: the match, if there is one, and whether it is what the leg waits for."""
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

    def end(self):
        self.is_waiting = False
