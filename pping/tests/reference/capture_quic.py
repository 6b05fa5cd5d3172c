"""The QUIC packets in a capture.

20. Only the first packet of a datagram counts, and of it only the first byte and the invariants of RFC 8999. Datagrams
    from or to port 53 are left to DNS. A packet has at least 21 bytes by the length of the IP header (RFC 9001, section
    5.4.2), or 19 if it is version negotiation. A short header has 0x80 clear; its spin bit is 0x20. 0x40 is the QUIC bit, which may be clear (RFC 9287).
21. A long header has 0x80 set, and 0x40 if its version is neither known nor 0 (version negotiation). Both connection IDs
    have at most 20 bytes, and there are at least 20 bytes from where the source ID begins. Drafts 17 to 21 have both
    lengths in one byte, each either 0 or less by 3. Version negotiation has at least 8 bytes of source ID, and behind
    it at least one version of 4 bytes and no part of one (RFC 8999, section 6) instead of the 20 bytes.
22. Known versions are 1, 2 (RFC 9369), drafts 17 to 34, and those of the pattern 0x?a?a?a?a. In them an Initial has type
    0 and a Retry type 3, but in version 2 an Initial has type 1 and a Retry type 0. A client's first Initial has 0x40
    set, and is in a datagram of at least 1200 bytes, with a destination ID of at least 8 (RFC 9000, sections 14.1 and
    7.2).
23. If the capture ends before the 8th byte, or in a long header before the 20 bytes of the source ID, the packet is
    not measured. Of version negotiation this goes for 20 bytes of the destination ID, or 8 if it has less than 26,
    and for the first byte of the source ID.
"""

from rules_quic import INITIAL, LONG, NEGOTIATION, RETRY, SHORT, QuicPacket

FIELDS = ["udp.srcport", "udp.payload"]
UDP_HEADER = 8
DNS_PORT = 53
LONG_BIT, FIXED_BIT, SPIN_BIT = 0x80, 0x40, 0x20
FEWEST_BYTES, LONGEST_ID, FEWEST_CAPTURED = 21, 20, 8
FEWEST_BYTES_OF_NEGOTIATION, VERSION_BYTES = 19, 4
FEWEST_BYTES_OF_FIRST, SHORTEST_ID_OF_FIRST = 1200, 8
VERSION_2 = 0x6B3343CF
PACKED = range(0xFF000011, 0xFF000016)
DRAFTS = range(0xFF000011, 0xFF000023)


def quic_of(line, header):
    """Returns the ports and the packet."""
    # The UDP header of a tunnel around it has fields with the same names.
    which = line.text("frame.protocols").split(":").count("udp") - header.inside.count("udp")
    source, destination = line.number("udp.srcport", which), line.number("udp.dstport", which)
    if source is None or destination is None or DNS_PORT in (source, destination):
        return None
    captured = bytes.fromhex(line.text("udp.payload", which))
    packet = packet_in(captured, header.payload - UDP_HEADER)
    return packet and (source, destination, packet)


def packet_in(captured, size):
    """Returns the packet at the beginning of a payload of `size` bytes, of which `captured` was captured, or None."""
    if size < FEWEST_BYTES_OF_NEGOTIATION or len(captured) < FEWEST_CAPTURED:
        return None
    first = captured[0]
    is_negotiation = first & LONG_BIT and captured[1:5] == bytes(4)
    if size < FEWEST_BYTES and not is_negotiation:
        return None
    has_quic_bit = bool(first & FIXED_BIT)
    if not first & LONG_BIT:
        return QuicPacket(SHORT, spin=bool(first & SPIN_BIT), has_quic_bit=has_quic_bit)
    version = int.from_bytes(captured[1:5], "big")
    is_known = version in (1, VERSION_2) or version in DRAFTS or version & 0x0F0F0F0F == 0x0A0A0A0A
    if version == 0:
        has_quic_bit = True
    elif not has_quic_bit and not is_known:
        return None
    if version in PACKED:
        lengths = [bits + 3 if bits else 0 for bits in divmod(captured[5], 16)]
        destination_at, source_at = 6, 6 + lengths[0]
    else:
        destination_at, source_at = 6, 7 + captured[5]
        # If this length was not captured, the last check below fails anyway.
        lengths = [captured[5], captured[source_at - 1] if source_at <= len(captured) else 0]
    if max(lengths) > LONGEST_ID:
        return None
    if is_negotiation:
        versions = size - source_at - lengths[1]
        if lengths[1] < SHORTEST_ID_OF_FIRST or versions <= 0 or versions % VERSION_BYTES:
            return None
        needed = destination_at + LONGEST_ID
        if size < needed:
            needed = destination_at + SHORTEST_ID_OF_FIRST
        # The two bytes after the destination ID are read together.
        if len(captured) < max(needed, source_at + 1):
            return None
    elif size < source_at + LONGEST_ID or len(captured) < source_at + LONGEST_ID:
        return None
    kind = {0b00: INITIAL, 0b11: RETRY} if version != VERSION_2 else {0b01: INITIAL, 0b00: RETRY}
    if version == 0:
        form = NEGOTIATION
    elif not is_known:
        form = INITIAL
    else:
        form = kind.get(first >> 4 & 3, LONG)
    is_first = form == INITIAL and has_quic_bit
    is_first = is_first and size >= FEWEST_BYTES_OF_FIRST and lengths[0] >= SHORTEST_ID_OF_FIRST
    return QuicPacket(
        form,
        version=version,
        is_known=is_known,
        has_quic_bit=has_quic_bit,
        is_first=is_first,
        destination_id=captured[destination_at : destination_at + lengths[0]],
        source_id=captured[source_at : source_at + lengths[1]],
    )
