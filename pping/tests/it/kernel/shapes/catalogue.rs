//! Packets of every shape.

use pping_common::parse::Untracked;

use super::{
    super::frames::{
        ACK, ARP, AUTHENTICATION, DESTINATION_OPTIONS, ESP, Extension, FIN, FRAGMENT, HOP_BY_HOP, ICMP,
        ICMPV6, IPV4, IPV6, Ip, LLDP, MPLS, NO_NEXT_HEADER, OLD_SERVICE_VLAN, OLDER_SERVICE_VLAN,
        PPPOE_SESSION, ROUTING, RST, SERVICE_VLAN, SYN, TCP, Tcp, UDP, VLAN, dns, ethernet, icmp, mpls,
        pppoe, pppoe_short, snap, timestamps, udp,
    },
    Shape,
    Treatment::{self, Dns, Echo, Stamped, Unstamped},
};

const NON_IP: Treatment = Treatment::Untracked(Untracked::NonIp);
const LATER_FRAGMENT: Treatment = Treatment::Untracked(Untracked::Fragment);
const TRUNCATED: Treatment = Treatment::Untracked(Untracked::Truncated);
const MALFORMED: Treatment = Treatment::Untracked(Untracked::Malformed);
const UNSUPPORTED: Treatment = Treatment::Untracked(Untracked::Unsupported);

const NOP: &[u8] = &[1];
const END: &[u8] = &[0];
const MSS: &[u8] = &[2, 4, 5, 180];
const WINDOW_SCALE: &[u8] = &[3, 3, 7];
const SACK_PERMITTED: &[u8] = &[4, 2];
const SACK: &[u8] = &[5, 10, 0, 0, 0, 1, 0, 0, 0, 2];

pub(in super::super) fn catalogue() -> Vec<Shape> {
    [links(), below_ip(), ipv4(), ipv6(), tcp_options(), tcp_headers(), echoes(), others()]
        .into_iter()
        .flatten()
        .map(|(name, frame, treatment)| Shape { name, frame, treatment })
        .collect()
}

/// `EtherType` and tag control information.
type Tag = (u16, u16);

/// A name, a frame, and how the programs should treat it.
type Entry = (String, Vec<u8>, Treatment);

fn entry(name: impl Into<String>, frame: Vec<u8>, treatment: Treatment) -> Entry {
    (name.into(), frame, treatment)
}

fn stamped() -> Vec<u8> {
    Tcp::stamped(1000, 2000).bytes()
}

fn links() -> Vec<Entry> {
    let stacks: &[(&str, &[Tag], Treatment)] = &[
        ("Ethernet", &[], Stamped),
        ("802.1Q", &[(VLAN, 42)], Stamped),
        ("priority tag", &[(VLAN, 0xe000)], Stamped),
        ("QinQ", &[(SERVICE_VLAN, 0x0fff), (VLAN, 1)], Stamped),
        ("old QinQ", &[(OLD_SERVICE_VLAN, 7), (VLAN, 8)], Stamped),
        ("older QinQ", &[(OLDER_SERVICE_VLAN, 7), (VLAN, 8)], Stamped),
        ("3 tags", &[(SERVICE_VLAN, 1), (SERVICE_VLAN, 2), (VLAN, 3)], Stamped),
        ("4 tags", &[(SERVICE_VLAN, 1), (SERVICE_VLAN, 2), (VLAN, 3), (VLAN, 4)], Stamped),
        ("5 tags", &[(VLAN, 1), (VLAN, 2), (VLAN, 3), (VLAN, 4), (VLAN, 5)], UNSUPPORTED),
    ];
    let mut entries = Vec::new();
    for (name, tags, treatment) in stacks {
        for ip in [Ip::v4(), Ip::v6()] {
            let frame = ethernet(tags, ip.ethertype(), &ip.packet(TCP, &stamped()));
            entries.push(entry(format!("{name}, {:#06x}", ip.ethertype()), frame, *treatment));
        }
    }
    entries.push(entry("ARP in a VLAN", ethernet(&[(VLAN, 3)], ARP, &[0; 28]), NON_IP));
    entries.push(entry("a tag and nothing else", ethernet(&[], VLAN, &[0, 5]), TRUNCATED));
    entries
}

/// Frames with headers between Ethernet and IP, other than tags.
fn below_ip() -> Vec<Entry> {
    const QINQ: &[Tag] = &[(SERVICE_VLAN, 100), (VLAN, 200)];
    let mut entries = Vec::new();
    for ip in [Ip::v4(), Ip::v6()] {
        let packet = ip.packet(TCP, &stamped());
        let protocol = if ip.ethertype() == IPV4 { 0x0021 } else { 0x0057 };
        for tags in [&[][..], &QINQ[..1], QINQ, &[QINQ, QINQ].concat()] {
            let name = format!("{:#06x} behind {} tags", ip.ethertype(), tags.len());
            let session = ethernet(tags, PPPOE_SESSION, &pppoe(protocol, &packet));
            entries.push(entry(format!("PPPoE, {name}"), session, Stamped));
            for labels in 1..=5 {
                let treatment = if labels <= 4 { Stamped } else { UNSUPPORTED };
                let frame = ethernet(tags, MPLS, &mpls(labels, &packet));
                entries.push(entry(format!("{labels} MPLS labels, {name}"), frame, treatment));
            }
            let both = ethernet(tags, PPPOE_SESSION, &pppoe(0x0281, &mpls(2, &packet)));
            entries.push(entry(format!("MPLS in PPPoE, {name}"), both, Stamped));
            let session = ethernet(tags, PPPOE_SESSION, &pppoe_short(protocol as u8, &packet));
            entries.push(entry(format!("PPPoE with a short number, {name}"), session, Stamped));
            let behind = snap(ip.ethertype(), &packet);
            let frame = ethernet(tags, behind.len() as u16, &behind);
            entries.push(entry(format!("SNAP, {name}"), frame, Stamped));
        }
        let inner = ethernet(&[], ip.ethertype(), &packet);
        for first in [0x40, 0x45, 0x46, 0x4e, 0x60, 0x6c] {
            let wire = mpls(2, &[&[first, 0, 0, 0, 0x5e, 1], &inner[6..]].concat());
            let name = format!("Ethernet to {first:02x}:00:00:00:5e:01 in MPLS, {:#06x}", ip.ethertype());
            entries.push(entry(name, ethernet(&[], MPLS, &wire), NON_IP));
        }
        let multicast = ethernet(&[], 0x8848, &mpls(1, &packet));
        entries.push(entry("MPLS to several", multicast, Stamped));
        let mut padded = ethernet(&[], PPPOE_SESSION, &pppoe(protocol, &packet));
        padded.extend([0; 9]);
        entries.push(entry("PPPoE with padding", padded, Stamped));
    }
    let packet = Ip::v4().packet(TCP, &stamped());
    for (name, ethertype, network, treatment) in [
        ("PPPoE discovery", 0x8863, pppoe(0x0021, &packet), NON_IP),
        (
            "PPPoE with the code of discovery",
            PPPOE_SESSION,
            [&[0x11, 9], &pppoe(0x0021, &packet)[2..]].concat(),
            UNSUPPORTED,
        ),
        ("LCP in PPPoE", PPPOE_SESSION, pppoe(0xc021, &packet), NON_IP),
        ("a pseudowire in MPLS", MPLS, mpls(2, &[&[0; 4], &packet[..]].concat()), NON_IP),
        (
            "SNAP of another organisation",
            60,
            [&[0xaa, 0xaa, 3, 0, 0, 0xf8, 8, 0], &packet[..]].concat(),
            NON_IP,
        ),
        ("IPv4 in LLC without SNAP", 60, [&[6, 6, 3], &packet[..]].concat(), NON_IP),
        ("nothing in MPLS", MPLS, mpls(1, &[]), TRUNCATED),
        ("IPv6 by its number and IPv4 by its version", PPPOE_SESSION, pppoe(0x0057, &packet), MALFORMED),
    ] {
        entries.push(entry(name, ethernet(&[], ethertype, &network), treatment));
    }
    entries
}

/// An authentication header before a segment.
fn authenticated(next: u8, words: u8, transport: &[u8]) -> Vec<u8> {
    let mut header = vec![next, words];
    header.resize((usize::from(words) + 2) * 4, 0xaa);
    header.extend(transport);
    header
}

fn ipv4() -> Vec<Entry> {
    let plain = Ip::v4;
    let mut entries = Vec::new();
    for words in 1..=10 {
        let ip = Ip { options: vec![1; 4 * words], ..plain() };
        entries.push(entry(format!("{words} words of IPv4 options"), ip.frame(TCP, &stamped()), Stamped));
    }
    for (name, ip, treatment) in [
        ("don't fragment", Ip { fragment: 0x4000, ..plain() }, Stamped),
        ("first fragment", Ip { fragment: 0x2000, ..plain() }, Stamped),
        ("middle fragment", Ip { fragment: 0x2010, ..plain() }, LATER_FRAGMENT),
        ("last fragment", Ip { fragment: 0x0001, ..plain() }, LATER_FRAGMENT),
        ("version 6 in IPv4", Ip { version: Some(6), ..plain() }, MALFORMED),
        ("version 0 in IPv4", Ip { version: Some(0), ..plain() }, MALFORMED),
        ("no header length", Ip { words: Some(0), ..plain() }, MALFORMED),
        ("header length of 4 words", Ip { words: Some(4), ..plain() }, MALFORMED),
        ("header length beyond the frame", Ip { words: Some(15), ..plain() }, TRUNCATED),
        ("no total length", Ip { len: Some(0), ..plain() }, Stamped),
        ("total length below its header", Ip { len: Some(19), ..plain() }, MALFORMED),
        ("total length inside TCP", Ip { len: Some(45), ..plain() }, MALFORMED),
        ("total length without payload", Ip { len: Some(52), ..plain() }, Stamped),
        ("total length beyond the frame", Ip { len: Some(u16::MAX), ..plain() }, Stamped),
    ] {
        entries.push(entry(name, ip.frame(TCP, &stamped()), treatment));
    }
    for traffic_class in [0x01, 0x02, 0x03, 0xb8, 0xff] {
        for ip in [plain(), Ip::v6()] {
            let frame = Ip { traffic_class, ..ip }.frame(TCP, &stamped());
            entries.push(entry(format!("traffic class {traffic_class:#04x}"), frame, Stamped));
        }
    }
    for words in [1, 4, 7, 255] {
        for ip in [plain(), Ip::v6(), Ip { options: vec![1; 8], ..plain() }] {
            let frame = ip.frame(AUTHENTICATION, &authenticated(TCP, words, &stamped()));
            entries.push(entry(format!("authentication header of {words} words"), frame, Stamped));
        }
    }
    let lonely = authenticated(TCP, 4, &[]);
    entries.push(entry("an authentication header alone", plain().frame(AUTHENTICATION, &lonely), TRUNCATED));
    let outside = Ip { len: Some(40), ..plain() };
    let frame = outside.frame(AUTHENTICATION, &authenticated(TCP, 4, &stamped()));
    entries.push(entry("an authentication header beyond the total length", frame, MALFORMED));
    let twice = authenticated(AUTHENTICATION, 1, &authenticated(TCP, 1, &stamped()));
    entries.push(entry("two authentication headers", plain().frame(AUTHENTICATION, &twice), UNSUPPORTED));
    let chain = Ip::with_extensions([Extension::of(HOP_BY_HOP, 1), Extension::of(DESTINATION_OPTIONS, 2)]);
    let frame = chain.frame(AUTHENTICATION, &authenticated(TCP, 4, &stamped()));
    entries.push(entry("an authentication header among extensions", frame, Stamped));
    let mut padded = plain().frame(TCP, &Tcp { payload: 0, ..Tcp::with_options([]) }.bytes());
    padded.resize(60, 0);
    entries.push(entry("pure ACK with padding", padded, Unstamped));
    let mut padded = plain().frame(TCP, &Tcp { payload: 0, ..Tcp::stamped(5, 6) }.bytes());
    padded.extend([0; 33]);
    entries.push(entry("pure ACK with odd padding", padded, Stamped));
    entries
}

fn ipv6() -> Vec<Entry> {
    let mut entries = Vec::new();
    let mut with = |name: String, ip: Ip, treatment| {
        entries.push(entry(name, ip.frame(TCP, &stamped()), treatment));
    };
    for number in [HOP_BY_HOP, ROUTING, DESTINATION_OPTIONS, FRAGMENT] {
        with(format!("extension {number}"), Ip::with_extensions([Extension::of(number, 1)]), Stamped);
    }
    for number in [HOP_BY_HOP, ROUTING, DESTINATION_OPTIONS] {
        for units in [2, 32] {
            let ip = Ip::with_extensions([Extension::of(number, units)]);
            with(format!("extension {number} of {units} units"), ip, Stamped);
        }
        let mut beyond = Extension::of(number, 1);
        beyond.1[0] = 255;
        with(format!("extension {number} beyond the frame"), Ip::with_extensions([beyond]), MALFORMED);
    }
    let chain =
        [HOP_BY_HOP, DESTINATION_OPTIONS, ROUTING, FRAGMENT, DESTINATION_OPTIONS, ROUTING, HOP_BY_HOP];
    for (count, treatment) in [(2, Stamped), (3, Stamped), (5, Stamped), (6, Stamped), (7, UNSUPPORTED)] {
        let ip = Ip::with_extensions(chain[..count].iter().map(|&number| Extension::of(number, 1)));
        with(format!("{count} extensions"), ip, treatment);
    }
    for (name, offset, more, treatment) in [
        ("atomic fragment", 0, false, Stamped),
        ("first fragment", 0, true, Stamped),
        ("middle fragment", 181, true, LATER_FRAGMENT),
        ("last fragment", 1, false, LATER_FRAGMENT),
    ] {
        let fragment = Extension::fragment(offset, more);
        with(format!("IPv6 {name}"), Ip::with_extensions([fragment.clone()]), treatment);
        let options = Extension::of(DESTINATION_OPTIONS, 1);
        with(format!("IPv6 {name} with options"), Ip::with_extensions([options, fragment]), treatment);
    }
    for (name, ip, treatment) in [
        ("version 4 in IPv6", Ip { version: Some(4), ..Ip::v6() }, MALFORMED),
        ("version 15 in IPv6", Ip { version: Some(15), ..Ip::v6() }, MALFORMED),
        ("no payload length", Ip { len: Some(0), ..Ip::v6() }, Stamped),
        ("payload length inside TCP", Ip { len: Some(31), ..Ip::v6() }, MALFORMED),
        ("payload length without payload", Ip { len: Some(32), ..Ip::v6() }, Stamped),
        ("payload length beyond the frame", Ip { len: Some(u16::MAX), ..Ip::v6() }, Stamped),
    ] {
        with(name.to_owned(), ip, treatment);
    }
    let short = Ip { len: Some(7), ..Ip::with_extensions([Extension::of(ROUTING, 1)]) };
    with("payload length inside an extension".to_owned(), short, MALFORMED);
    entries
}

fn tcp_options() -> Vec<Entry> {
    let stamp = &timestamps(3, 4)[..];
    let others = [MSS, WINDOW_SCALE, SACK_PERMITTED, SACK, NOP];
    let mut orders: Vec<(String, Vec<u8>, Treatment)> = Vec::new();
    for position in 0..=others.len() {
        for rotation in 0..others.len() {
            let mut order = others;
            order.rotate_left(rotation);
            let options = [&order[..position], &[stamp], &order[position..]].concat().concat();
            orders.push((
                format!("timestamps at position {position}, rotation {rotation}"),
                options,
                Stamped,
            ));
        }
    }
    for padding in 0..=30 {
        let options = [vec![1; padding], stamp.to_vec()].concat();
        orders.push((format!("timestamps behind {padding} NOPs"), options, Stamped));
    }
    for (name, options, treatment) in [
        ("none", vec![], Unstamped),
        ("SACK only", vec![NOP, NOP, SACK], Unstamped),
        ("40 NOPs", vec![&[1; 40][..]], Unstamped),
        ("timestamps behind the end", vec![END, stamp], Unstamped),
        ("timestamps behind NOP and end", vec![NOP, END, stamp], Unstamped),
        ("length 0", vec![&[30, 0][..], stamp], Unstamped),
        ("length 1", vec![&[30, 1][..], stamp], Unstamped),
        ("length 2", vec![&[30, 2][..], stamp], Stamped),
        ("length beyond the header", vec![&[30, 255][..], stamp], Unstamped),
        ("length over the timestamps", vec![&[30, 12][..], stamp], Unstamped),
        ("timestamps of 9 bytes", vec![&[8, 9][..], &stamp[2..]], Unstamped),
        ("timestamps of 11 bytes", vec![&[8, 11][..], &stamp[2..]], Unstamped),
        (
            "timestamps that leave the header",
            vec![NOP, NOP, NOP, &[8, 10, 0, 0, 0, 1, 0, 0, 0][..]],
            Unstamped,
        ),
        ("timestamps twice", vec![stamp, &timestamps(77, 78)[..]], Stamped),
        ("a kind in the last byte", vec![NOP, NOP, NOP, &[8][..]], Unstamped),
    ] {
        orders.push((name.to_owned(), options.concat(), treatment));
    }
    let mut entries = Vec::new();
    for (name, options, treatment) in orders {
        for ip in [Ip::v4(), Ip::v6()] {
            let frame = ip.frame(TCP, &Tcp::with_options(&options[..]).bytes());
            entries.push(entry(format!("options: {name}, {:#06x}", ip.ethertype()), frame, treatment));
        }
    }
    entries
}

fn tcp_headers() -> Vec<Entry> {
    let mut entries = Vec::new();
    for flags in [0, FIN, SYN, SYN | ACK, RST, RST | ACK, ACK, FIN | ACK, SYN | FIN, 0xff] {
        for payload in [0, 1, 100] {
            // Each case has new ports, so that earlier packets do not matter.
            let ports = (1000 + u16::from(flags), 2000 + payload as u16);
            let segment = Tcp { ports, flags, payload, ..Tcp::stamped(9, 8) };
            let name = format!("flags {flags:#04x}, {payload} bytes");
            entries.push(entry(name.clone(), Ip::v4().frame(TCP, &segment.bytes()), Stamped));
            entries.push(entry(name, Ip::v6().frame(TCP, &segment.bytes()), Stamped));
        }
    }
    for (words, treatment) in [(0, MALFORMED), (4, MALFORMED), (5, Unstamped), (15, MALFORMED)] {
        let segment = Tcp { words: Some(words), payload: 0, ..Tcp::stamped(1, 1) }.bytes();
        entries.push(entry(format!("data offset {words}"), Ip::v4().frame(TCP, &segment), treatment));
    }
    entries
}

fn echoes() -> Vec<Entry> {
    let mut entries = Vec::new();
    for (ip, protocol, kinds) in [
        (Ip::v4(), ICMP, [(8, Echo), (0, Echo), (3, UNSUPPORTED), (11, UNSUPPORTED), (13, UNSUPPORTED)]),
        (
            Ip::v6(),
            ICMPV6,
            [(128, Echo), (129, Echo), (1, UNSUPPORTED), (135, UNSUPPORTED), (8, UNSUPPORTED)],
        ),
    ] {
        for (kind, treatment) in kinds {
            for payload in [0, 56] {
                let frame = ip.frame(protocol, &icmp(kind, 0, 77, 1, payload));
                entries.push(entry(format!("ICMP type {kind}, {payload} bytes"), frame, treatment));
            }
        }
        let request = kinds[0].0;
        entries.push(entry("echo with a code", ip.frame(protocol, &icmp(request, 1, 7, 1, 8)), UNSUPPORTED));
        let short = Ip { len: Some(if protocol == ICMP { 27 } else { 7 }), ..ip.clone() };
        entries.push(entry("echo too short", short.frame(protocol, &icmp(request, 0, 7, 1, 8)), MALFORMED));
    }
    let wrong = Ip::v4().frame(ICMPV6, &icmp(128, 0, 1, 1, 8));
    entries.push(entry("ICMPv6 in IPv4", wrong, UNSUPPORTED));
    let wrong = Ip::v6().frame(ICMP, &icmp(8, 0, 1, 1, 8));
    entries.push(entry("ICMP in IPv6", wrong, UNSUPPORTED));
    entries
}

fn others() -> Vec<Entry> {
    vec![
        entry("UDP", Ip::v4().frame(UDP, &udp(30)), UNSUPPORTED),
        entry("UDP in IPv6", Ip::v6().frame(UDP, &udp(30)), UNSUPPORTED),
        entry("DNS query", Ip::v4().frame(UDP, &dns((4000, 53), 7, [1, 0], 30)), Dns),
        entry("DNS query in IPv6", Ip::v6().frame(UDP, &dns((4000, 53), 7, [1, 0], 30)), Dns),
        entry("DNS response", Ip::v4().frame(UDP, &dns((53, 4000), 7, [0x81, 0x80], 12)), Dns),
        entry("DNS response to a server", Ip::v4().frame(UDP, &dns((40, 53), 7, [0x81, 0], 12)), UNSUPPORTED),
        entry("DNS over multicast", Ip::v4().frame(UDP, &dns((5353, 5353), 0, [0, 0], 30)), UNSUPPORTED),
        entry("no DNS", Ip::v4().frame(UDP, &dns((4000, 53), 7, [1, 0], 11)), MALFORMED),
        entry("ESP", Ip::v4().frame(ESP, &[7; 40]), UNSUPPORTED),
        entry("ESP in IPv6", Ip::v6().frame(ESP, &[7; 40]), UNSUPPORTED),
        entry("no next header", Ip::v6().frame(NO_NEXT_HEADER, &[]), UNSUPPORTED),
        entry("later fragment of UDP", Ip { fragment: 9, ..Ip::v4() }.frame(UDP, &udp(30)), LATER_FRAGMENT),
        entry("ARP", ethernet(&[], ARP, &[0; 46]), NON_IP),
        entry("LLDP", ethernet(&[], LLDP, &[2; 46]), NON_IP),
        entry("802.3", ethernet(&[], 38, &[0x42; 46]), NON_IP),
        entry("nothing behind the header", ethernet(&[], IPV4, &[]), TRUNCATED),
        entry("nothing behind the header, IPv6", ethernet(&[], IPV6, &[]), TRUNCATED),
    ]
}
