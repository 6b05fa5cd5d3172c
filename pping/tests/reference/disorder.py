"""Finds the reordered segments of a capture.

A segment that consumes sequence space without moving the highest end of its direction (rule S1) is either retransmitted
or reordered. It is reordered if its TSval is older than the newest before it in its direction (rule 5): then it was sent
before segments already seen. A keep-alive is neither, because it repeats the last byte sent.
"""

from collections import Counter

import capture
from rules_base import Clock, Limits, is_newer
from rules_tcp import Connections, Segment


class Disorder(Connections):
    """All segments. Counts reordered ones by address and port of the sender, then of the receiver."""

    def __init__(self):
        super().__init__(Limits())
        self.counts = Counter()

    def record(self, flow, own, packet):
        segment, highest, newest = packet.content, own.ends.highest, own.stamps.newest
        super().record(flow, own, packet)
        is_keep_alive = segment.length == 1 == segment.consumed() and segment.end() == highest
        is_moved = highest is None or own.ends.highest != highest
        if not segment.consumed() or is_moved or is_keep_alive or None in (newest, segment.tsval):
            return
        if is_newer(newest, segment.tsval):
            self.counts[packet.source + packet.target] += 1


def count(packets):
    """Counts the reordered segments in an iterable of packets, by their endpoints."""
    clock, disorder = Clock(), Disorder()
    for packet in packets:
        second = clock.advance(packet.time)
        if isinstance(packet.content, Segment):
            disorder.visit(packet, second)
    return disorder.counts


def count_in(file):
    return count(capture.read(file))
