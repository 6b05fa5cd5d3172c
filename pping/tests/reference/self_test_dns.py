"""Rules D1 to D5, and D2a."""

from capture import packet_of
from rules import families_of, samples
from rules_base import Limits, Packet
from rules_dns import Message
from self_test_capture import line
from self_test_packets import MS

QUERY, RESPONSE = "0x0100", "0x8180"


def query(time, identifier, port=4000, server="b", interface=""):
    return Packet(time * MS, interface, ("a", port), (server, 53), Message(identifier, False))


def response(time, identifier, code=0, port=4000, server="b", interface=""):
    return Packet(time * MS, interface, (server, 53), ("a", port), Message(identifier, True, code))


def check(rule, packets, *expected, unanswered=0, answered=None, methods=("dns",), arms="one"):
    """Expects samples, each given as identifier and RTT, and counts."""
    families = families_of(Limits(methods=methods, arms=arms))
    found = [(sample["id"], sample["rtt"] // MS) for sample in samples(packets, families=families)]
    assert found == list(expected), f"{rule}: expected {list(expected)}, found {found}"
    counts = families[Message].counts
    answered = len(expected) if answered is None else answered
    assert sum(counts["responses"].values()) == answered, f"{rule}: {counts}"
    assert counts["unanswered"] == unanswered, f"{rule}: {counts}"


def run():
    check_matching()
    check_time()
    check_messages()


def check_matching():
    check(
        "several queries of one port, answered in another order",
        [query(0, 1), query(1, 2), query(2, 3), response(20, 3), response(21, 1), response(22, 2)],
        (3, 18),
        (1, 21),
        (2, 21),
    )
    check("only the first response counts", [query(0, 1), response(20, 1), response(21, 1)], (1, 20))
    check("a response without a query is nothing", [response(20, 1), query(21, 1)])
    copy = query(0, 1)._replace(time=2**20 - 1)
    check("a copy voids nothing", [query(0, 1), copy, response(20, 1)], (1, 20), answered=1)
    sent, forged, right = (packet._replace(is_outgoing=out) for packet, out in [
        (query(0, 1), True), (response(5, 1), True), (response(20, 1), False)
    ])
    check("a response from the side of its query is forged", [sent, forged, right], (1, 20), arms="two")
    check("that is right with one arm", [sent, forged, right], (1, 5))
    asked = query(5, 1)._replace(is_outgoing=False)
    check("a query from the other side is another one", [sent, asked, right], (1, 20), arms="two")
    check("with one arm it is the same", [sent, asked, right], answered=1)
    check("a repeated query voids", [query(0, 1), query(5, 1), response(20, 1), response(25, 1)], answered=1)
    check(
        "an ID can be used again once it is answered",
        [query(0, 1), response(20, 1), query(30, 1), response(35, 1), query(40, 1), query(42, 1), response(50, 1)]
        + [query(60, 1), response(61, 1)],
        (1, 20),
        (1, 5),
        (1, 1),
        answered=4,
    )
    check(
        "interface, ports, hosts and ID identify a query",
        [query(0, 1), response(1, 1, port=4001), response(2, 1, server="c"), response(3, 1, interface="x")]
        + [response(4, 2), response(5, 1)],
        (1, 5),
    )
    check(
        "a host that asks is not one that answers",
        [query(0, 1), Packet(5 * MS, "", ("a", 4000), ("b", 53), Message(1, True)), response(6, 1)],
        (1, 6),
    )
    check("whatever the code says", [query(0, 1), response(9, 1, code=3), query(10, 1), response(12, 1)], (1, 9), (1, 2))
    check("not if it is off", [query(0, 1), response(9, 1)], methods=("tcp-ts",))
    families = families_of(Limits(methods=("dns",)))
    packets = [query(0, 1), query(1, 2), query(2, 3), query(4, 2), response(9, 1, 3), response(9, 2, 3), response(9, 3)]
    assert len(list(samples(packets, families=families))) == 2
    assert families[Message].counts == {"queries": 4, "unanswered": 0, "responses": {0: 1, 3: 2}}


def check_time():
    check("less than 10 s", [query(0, 1), response(9_999, 1)], (1, 9_999))
    check("10 s", [query(0, 1), response(10_000, 1)], unanswered=1)
    check("any packet advances the clock", [query(0, 1), Packet(10_000 * MS), response(9_000, 1)], unanswered=1)
    check("void ones wait from the repetition", [query(0, 1), query(6_000, 1), response(15_999, 1)], answered=1)
    check("and no longer", [query(0, 1), query(6_000, 1), response(16_000, 1)], unanswered=1)
    check("then a new one begins", [query(0, 1), query(10_000, 1), response(10_007, 1)], (1, 7), unanswered=1)
    check("pending at the end of the file", [query(0, 1), query(0, 2), query(9_999, 3)])
    check("a response that is older is none", [query(5, 1), response(4, 1), response(6, 1)], answered=1)
    check(
        "more than a minute back, time goes on from there",
        [query(100_000, 1), query(108_000, 2), Packet(40_000 * MS), response(41_999, 1), Packet(49_999 * MS)]
        + [query(50_000, 3), response(50_005, 3)],
        (3, 5),
        unanswered=1,
        answered=2,
    )
    check(
        "a minute back, it stands",
        [query(100_000, 1), Packet(40_000 * MS), Packet(99_000 * MS), response(109_999, 1)],
        (1, 9_999),
    )


def check_messages():
    """Rule D1."""

    def check_message(expected, protocols="eth:ethertype:ip:udp:dns", decap=(), **fields):
        known = {"udp_srcport": "4000", "udp_dstport": "53", "dns_id": "0x0007", "dns_flags": QUERY}
        known |= {"ip_len": "40,40", "ip_hdr__len": "20,20"}
        packet = packet_of(line(protocols, **(known | fields)), decap)
        found = packet.content and (packet.source[1], packet.target[1], *packet.content)
        assert found == expected, f"{fields}: expected {expected}, found {found}"

    to, from_ = {"udp_srcport": "4000", "udp_dstport": "53"}, {"udp_srcport": "53", "udp_dstport": "4000"}
    check_message((4000, 53, 7, False, 0))
    check_message((53, 4000, 7, True, 0), dns_flags=RESPONSE, **from_)
    check_message((53, 4000, 7, True, 3), dns_flags="0x8383", **from_)
    check_message((53, 53, 7, True, 0), dns_flags=RESPONSE, udp_srcport="53")
    check_message((53, 53, 7, False, 0), udp_srcport="53")
    check_message(None, dns_flags=RESPONSE, **to)
    check_message(None, **from_)
    check_message(None, ip_len="39")
    check_message(None, dns_flags="")
    check_message(None, "eth:ethertype:ip:udp:mdns", udp_dstport="5353", udp_srcport="5353")
    check_message(None, "eth:ethertype:ip:icmp:ip:udp:dns", icmp_type="3")
    check_message(None, "eth:ethertype:ip:udp:data", udp_dstport="54")
    in_vxlan = "eth:ethertype:ip:udp:vxlan:eth:ethertype:ip:udp:dns"
    ports = {"udp_srcport": "9,4000", "udp_dstport": "4789,53", "vxlan_flags": "0x0800"}
    check_message((4000, 53, 7, False, 0), in_vxlan, ["vxlan"], **ports)
