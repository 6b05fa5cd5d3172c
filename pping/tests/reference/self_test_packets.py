"""Packets made by hand, between the hosts a and b. Times are in milliseconds."""

from rules import samples
from rules_base import METHODS, Limits, Packet
from rules_icmp import Echo
from rules_tcp import ACK, SYN, Segment

MS = 10**6


def there(time, flags, length, tsval, tsecr=0):
    """A segment from a to b that matters only for its timestamps."""
    return from_a(time, flags, 0, length, tsval=tsval, tsecr=tsecr)


def back(time, flags, length, tsval, tsecr=0):
    return from_b(time, flags, 0, length, tsval=tsval, tsecr=tsecr)


def from_a(time, flags, sequence, length=0, acknowledgment=0, **fields):
    """A segment from a to b, without timestamps or SACK option unless `fields` has them."""
    segment = Segment(flags, length, sequence=sequence, acknowledgment=acknowledgment)._replace(**fields)
    return Packet(time * MS, "", ("a", 1000), ("b", 80), segment)


def from_b(time, flags, sequence, length=0, acknowledgment=0, **fields):
    packet = from_a(time, flags, sequence, length, acknowledgment, **fields)
    return packet._replace(source=packet.target, target=packet.source)


def request(time, identifier, sequence, data=None):
    return Packet(time * MS, "", ("a", identifier), ("b", identifier), Echo(sequence, True, data))


def reply(time, identifier, sequence, data=None):
    return Packet(time * MS, "", ("b", identifier), ("a", identifier), Echo(sequence, False, data))


def check(rule, packets, *expected, rate=0, methods=("tcp-ts", "icmp-echo")):
    """Expects samples, each given as replying host, identifier and RTT."""
    limits = Limits(rate=rate, methods=methods)
    found = [(sample["src_ip"], sample["id"], sample["rtt"] // MS) for sample in samples(packets, limits)]
    assert found == list(expected), f"{rule}: expected {list(expected)}, found {found}"


def check_all(rule, packets, *expected, methods=METHODS, **limits):
    """Expects samples of several methods, each given as method, replying host, identifier and RTT."""
    found = [
        (sample["method"], sample["src_ip"], sample["id"], sample["rtt"] // MS)
        for sample in samples(packets, Limits(methods=methods, **limits))
    ]
    assert found == list(expected), f"{rule}: expected {list(expected)}, found {found}"


HANDSHAKE = [there(0, SYN, 0, 10), back(20, SYN | ACK, 0, 500, 10), there(21, ACK, 0, 30, 500)]
HANDSHAKEN = [("b", 10, 20), ("a", 500, 1)]
