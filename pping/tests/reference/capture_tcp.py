"""The segments in a capture.

19. A segment is measured if its data offset is at least 5 and within the IP length, and if the capture holds its 20
    bytes of fixed header. The first timestamps option counts, the last window scale, and any SACK option of at least one
    block. The search
    for options ends at the end-of-options mark, and at a bad length: less than 2, beyond the header, or other than 10
    for the timestamps option. If the capture ends before the search does, the segment is not measured, unless the
    timestamps have been found. A SACK option beyond the capture then counts as absent.
"""

from rules_tcp import MOST_SHIFT, Segment

FIELDS = [
    "tcp.srcport",
    "tcp.dstport",
    "tcp.seq_raw",
    "tcp.ack_raw",
    "tcp.flags",
    "tcp.hdr_len",
    "tcp.urgent_pointer",
    "tcp.len",
    "tcp.options",
]
END, NO_OPERATION, WINDOW_SCALE, SACK, TIMESTAMPS = 0, 1, 3, 5, 8
TIMESTAMPS_SIZE, SMALLEST_SACK = 10, 10


def segment_of(line, header):
    """Returns the ports and the segment, if its whole fixed header was captured and its data offset is valid."""
    header_length, length = line.number("tcp.hdr_len"), line.number("tcp.len")
    if header_length is None or header_length < 20 or line.number("tcp.urgent_pointer") is None:
        return None
    if length is None:
        # tshark gives no length for a fragment.
        length = header.payload - header_length
        if length < 0:
            return None
    options = options_in(bytes.fromhex(line.text("tcp.options")), header_length - 20)
    if options is None:
        return None
    sequence, acknowledgment = line.number("tcp.seq_raw"), line.number("tcp.ack_raw")
    segment = Segment(line.number("tcp.flags"), length, None, None, sequence, acknowledgment)._replace(**options)
    return line.number("tcp.srcport"), line.number("tcp.dstport"), segment


def options_in(options, length):
    """Returns the fields of a segment that the options set. Returns None if the segment is not measured."""
    found, at = {}, 0
    while at < length:
        if at >= len(options):
            return found if "tsval" in found else None
        kind = options[at]
        if kind == END:
            break
        if kind == NO_OPERATION:
            at += 1
            continue
        if at + 1 >= length:
            break
        if at + 1 >= len(options):
            return found if "tsval" in found else None
        size = options[at + 1]
        if size < 2 or at + size > length or kind == TIMESTAMPS and size != TIMESTAMPS_SIZE:
            break
        if kind == SACK and size >= SMALLEST_SACK:
            found["has_sack_block"] = True
        if kind == WINDOW_SCALE and at + 2 < min(length, len(options)):
            found["window_shift"] = min(options[at + 2], MOST_SHIFT)
        if kind == TIMESTAMPS and "tsval" not in found:
            if at + size > len(options):
                return None
            found["tsval"], found["tsecr"] = (
                int.from_bytes(options[at + first : at + first + 4], "big") for first in (2, 6)
            )
        at += size
    return found
