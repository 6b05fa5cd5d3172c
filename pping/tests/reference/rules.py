"""Turns packets into samples. The rules are in rules_base.py and in the file of each family of methods.

A family of methods is a class that takes the limits. Its `visit(packet, second)` returns the matches of a packet with
its kind of content, at a second of the clock. `pass_time(now)` of the DNS family is called for all packets.
"""

from rules_base import Clock, Limits
from rules_dns import Message, Queries
from rules_icmp import Echo, Echoes
from rules_quic import QuicFlows, QuicPacket
from rules_tcp import Connections, Segment

FAMILIES = {Segment: Connections, Echo: Echoes, Message: Queries, QuicPacket: QuicFlows}


def families_of(limits):
    """Returns all families, by the content of their packets."""
    return {content: family(limits) for content, family in FAMILIES.items()}


def samples(packets, limits=Limits(), families=None):
    """Yields the samples in an iterable of packets."""
    families = families or families_of(limits)
    clock = Clock()
    for packet in packets:
        second = clock.advance(packet.time)
        families[Message].pass_time(packet.time)
        if packet.content is None:
            continue
        for match in families[type(packet.content)].visit(packet, second):
            if packet.time >= match.recorded_at:
                yield sample(packet, match)


def sample(packet, match):
    return {
        "method": match.method,
        "src_ip": packet.source[0],
        "src_port": packet.source[1],
        "dest_ip": packet.target[0],
        "dest_port": packet.target[1],
        "id": match.identifier,
        "rtt": packet.time - match.recorded_at,
        "recorded_at": match.recorded_at,
        "matched_at": packet.time,
    }
