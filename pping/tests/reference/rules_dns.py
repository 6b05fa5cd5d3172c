"""dns

D1. A UDP datagram with at least 12 bytes of payload is a query if it goes to a port of the list and its QR bit is 0,
    and a response if it comes from one and the bit is 1.
D2. A query is pending under interface, client, server (each with its port) and ID. If the query was pending already, it
    becomes void, and its waiting time starts again; but one that comes less than 2^20 ns after the latest of them is a copy,
    and only counts.
D2a. With two arms, the direction is one more of these values: that of the query, or the opposite one of the response.
D3. A response removes the pending query with the same values, whatever its code and whether it is truncated or not. If
    that query is not void, and not later than the response, the response yields a sample.
D4. A query that has been pending for 10 s is removed, and counts as unanswered. The clock is the newest packet of the
    file so far, of any kind. After a packet that is more than 60 s older, time continues from that packet.
D5. The counts are those of queries, of unanswered queries, and of responses that removed a query, by their code. A query
    still pending at the end of the file counts only as a query.

Left out: pping has room for 32768 pending queries of each family. No capture here has that many.
"""

from typing import NamedTuple

from rules_base import COPY_WITHIN, FILE_SETBACK, SECOND, Match

PATIENCE = 10 * SECOND


class Message(NamedTuple):
    """The fields of a DNS message that the rules use."""

    identifier: int
    is_response: bool
    code: int = 0


class Waiting(NamedTuple):
    """A pending query: when it was first seen, and the clock when it was last sent."""

    seen: int
    asked: int
    is_void: bool


class Queries:
    """All queries and their counts."""

    def __init__(self, limits):
        self.limits, self.is_on = limits, "dns" in limits.methods
        self.waiting = {}
        self.elapsed, self.newest = 0, None
        self.counts = {"queries": 0, "unanswered": 0, "responses": {}}

    def pass_time(self, now):
        """Notes that a packet of any kind passes: rule D4."""
        if self.newest is None or self.newest - now > FILE_SETBACK:
            self.newest = now
        self.elapsed += max(now - self.newest, 0)
        self.newest = max(self.newest, now)
        late = [key for key, query in self.waiting.items() if self.elapsed - query.asked >= PATIENCE]
        for key in late:
            del self.waiting[key]
        self.counts["unanswered"] += len(late)

    def visit(self, packet, _second):
        if not self.is_on:
            return []
        message = packet.content
        ends = (packet.target, packet.source) if message.is_response else (packet.source, packet.target)
        key = (packet.interface, *ends, message.identifier, self.side(packet))
        if not message.is_response:
            self.counts["queries"] += 1
            before = self.waiting.get(key)
            if before is None or packet.time - before.seen >= COPY_WITHIN:
                self.waiting[key] = Waiting(packet.time, self.elapsed, before is not None)
            return []
        query = self.waiting.pop(key, None)
        if query is None:
            return []
        responses = self.counts["responses"]
        responses[message.code] = responses.get(message.code, 0) + 1
        return [] if query.is_void else [Match("dns", message.identifier, query.seen)]

    def side(self, packet):
        """Rule D2a."""
        return self.limits.arms == "two" and packet.is_outgoing != packet.content.is_response
