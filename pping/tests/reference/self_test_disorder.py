"""Tests the counts of disorder.py."""

from disorder import count
from rules_tcp import ACK, FIN, RST, SYN
from self_test_packets import from_a, from_b

# Segments of a: the next sequence number is 120, and the newest TSval 12.
BEGIN = [from_a(0, ACK, 100, 10, tsval=10), from_a(2, ACK, 110, 10, tsval=12)]


def check(what, packets, expected):
    found = count(packets)[("a", 1000, "b", 80)]
    assert found == expected, f"{what}: expected {expected}, found {found}"


def run():
    check("in order", BEGIN, 0)
    check("sent before what is there already", [*BEGIN, from_a(3, ACK, 90, 10, tsval=9)], 1)
    check("each counts", [*BEGIN, from_a(3, ACK, 90, 10, tsval=9), from_a(4, ACK, 80, 10, tsval=8)], 2)
    check("sent again", [*BEGIN, from_a(3, ACK, 100, 10, tsval=13)], 0)
    check("in the same tick", [*BEGIN, from_a(3, ACK, 100, 10, tsval=12)], 0)
    check("beyond what is there", [*BEGIN, from_a(3, ACK, 120, 10, tsval=9)], 0)
    check("no sequence space", [*BEGIN, from_a(3, ACK, 100, tsval=9)], 0)
    check("FIN has some", [*BEGIN, from_a(3, FIN | ACK, 109, tsval=9)], 1)
    check("without timestamps", [*BEGIN, from_a(3, ACK, 100, 10)], 0)
    check("a RST", [*BEGIN, from_a(3, RST, 100, 10, tsval=9)], 0)
    check("a keep-alive", [*BEGIN, from_a(3, ACK, 119, 1, tsval=9)], 0)
    check("one byte elsewhere", [*BEGIN, from_a(3, ACK, 118, 1, tsval=9)], 1)
    check("more than a byte at the end", [*BEGIN, from_a(3, ACK, 118, 2, tsval=9)], 1)
    check("a FIN at the end", [*BEGIN, from_a(3, FIN | ACK, 119, tsval=9)], 1)
    check(
        "a pure ACK had a newer TSval", [BEGIN[0], from_a(1, ACK, 110, tsval=15), from_a(2, ACK, 100, 9, tsval=11)], 1
    )
    check("TSvals of the other direction", [BEGIN[0], from_b(1, ACK, 1, tsval=15), from_a(2, ACK, 100, 9, tsval=11)], 0)
    check("a SYN that sets the highest end", [*BEGIN, from_a(3, SYN, 50, tsval=9), from_a(4, ACK, 51, 9, tsval=10)], 0)
    check("in a new connection", [*BEGIN, from_a(3, SYN, 50, tsval=5), from_a(4, ACK, 41, 9, tsval=4)], 1)
