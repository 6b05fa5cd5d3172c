//! The summary says why a capture gave no or few samples, and what to do about it.

use super::{
    generate::again,
    made::{MILLISECOND, Packet, SECOND, START, connection, enhanced_packet, interface, pcap, section},
    program::{pping, read, rtts, samples, stderr},
};
use crate::frames::{ACK, ESP, Ip, PSH, SYN, TCP, Tcp, UDP, dns, echo, v4, v6};

const RTT: u64 = 20 * MILLISECOND;

/// Returns what standard error says about this capture.
fn said(capture: &[u8]) -> String {
    stderr(&read(capture, "--format none"))
}

/// Whether the client sent this packet of [`connection`].
fn is_of_client(packet: &Packet) -> bool {
    const SOURCE: usize = 26;
    packet.bytes[SOURCE..].starts_with(&[192, 0, 2])
}

#[track_caller]
fn assert_says(said: &str, parts: &[&str]) {
    for part in parts {
        assert!(said.contains(part), "no `{part}` in: {said}");
    }
}

#[test]
fn captures_of_one_direction_say_so() {
    for is_wanted in [true, false] {
        let packets: Vec<Packet> = (0..5)
            .flat_map(|port| connection(40_000 + port, START, 5, RTT))
            .filter(|packet| is_of_client(packet) == is_wanted)
            .collect();
        assert_says(
            &said(&pcap(&packets)),
            &[
                "\nnot measured: 5 TCP flows (one_way): segments of one direction only; ",
                "\nfew samples: 0 of 5 TCP flows gave one; 5 had segments of one direction only\n",
                "\none direction: all 5 flows and exchanges have packets of one direction only; ",
                "capture the other direction too",
            ],
        );
    }
}

#[test]
fn many_flows_of_one_direction_name_the_other_port() {
    let said_of = |whole: u16| {
        let all = (0..60).flat_map(|port| {
            let packets = connection(40_000 + port, START, 5, RTT).into_iter();
            packets.filter(move |packet| port < whole || is_of_client(packet))
        });
        let mut packets: Vec<Packet> = all.collect();
        packets.sort_by_key(|packet| packet.at);
        said(&pcap(&packets))
    };
    assert_says(
        &said_of(45),
        &[
            "\nnot measured: 15 TCP flows (one_way): the other direction of 25 % of the flows was not seen; it may pass \
             another port: ",
            "read it with --join",
        ],
    );
    assert_says(&said_of(55), &["\nnot measured: 5 TCP flows (one_way): segments of one direction only; "]);
}

/// Flows of less than two seconds, which sequence numbers do not measure yet.
#[test]
fn flows_whose_timestamps_stand_still_say_so() {
    let packets: Vec<Packet> = (0..5).flat_map(|port| still(40_000 + port, 8)).collect();
    let flows = "\nnot measured: 5 TCP flows (still_timestamps): the timestamps of an end did not move";
    let message = said(&pcap(&packets));
    assert_says(&message, &[flows, "--tcp-method seq measures the rest"]);
    assert!(!message.contains("few samples"), "their handshakes gave samples: {message}");
    // Without the handshakes nothing is measured.
    let begun: Vec<Packet> = packets.into_iter().filter(|packet| packet.at >= START + 2 * RTT).collect();
    assert_says(
        &said(&pcap(&begun)),
        &[flows, "\nfew samples: 0 of 5 TCP flows gave one; 5 had timestamps that did not move\n"],
    );
    let by_sequence = stderr(&read(&pcap(&begun), "--format none --tcp-method seq"));
    assert!(!by_sequence.contains("did not move") && by_sequence.contains("tcp-seq"), "{by_sequence}");
}

/// A connection of which each end has one timestamp for all its segments.
fn still(port: u16, exchanges: u32) -> Vec<Packet> {
    let [client, server] = [v4(1), v4(2)];
    let mut packets = Vec::new();
    let mut at = START;
    let mut send = |is_client: bool, flags: u8, (sequence, acknowledgement), payload: usize| {
        let (from, to, ports) =
            if is_client { (client, server, (port, 443)) } else { (server, client, (443, port)) };
        let stamps = if is_client { (7, 9) } else { (9, 7) };
        let segment =
            Tcp { ports, flags, sequence, acknowledgement, payload, ..Tcp::stamped(stamps.0, stamps.1) };
        packets.push(Packet { at, bytes: Ip::between(from, to).frame(TCP, &segment.bytes()) });
        at += RTT;
    };
    send(true, SYN, (0, 0), 0);
    send(false, SYN | ACK, (0, 1), 0);
    for exchange in 0..exchanges {
        let sent = 1 + 10 * exchange;
        send(true, ACK | PSH, (sent, sent), 10);
        send(false, ACK | PSH, (sent, sent + 10), 10);
    }
    packets
}

#[test]
fn segments_sent_again_say_so() {
    let packets: Vec<Packet> = (0..5).flat_map(|port| connection(40_000 + port, START, 5, RTT)).collect();
    assert!(!said(&pcap(&packets)).contains("retransmitted"));
    // A mirror whose copies are too late for copies.
    let late = |packet: &Packet| Packet { at: packet.at + 5 * MILLISECOND, ..packet.clone() };
    let mut twice: Vec<Packet> = packets.iter().flat_map(|packet| [packet.clone(), late(packet)]).collect();
    twice.sort_by_key(|packet| packet.at);
    assert_says(&said(&pcap(&twice)), &["\nretransmitted: ", " TCP segments: ", "come here twice"]);
}

#[test]
fn flows_split_over_two_interfaces_say_so() {
    let mut capture = [section(), interface(1, "tap-a"), interface(1, "tap-b")].concat();
    let mut packets: Vec<Packet> = (0..5).flat_map(|port| connection(40_000 + port, START, 5, RTT)).collect();
    packets.sort_by_key(|packet| packet.at);
    for packet in &packets {
        capture.extend(enhanced_packet(u32::from(is_of_client(packet)), packet, 0));
    }
    let message = said(&capture);
    assert_says(
        &message,
        &[
            "split over two interfaces: 5 of 5 flows",
            " tap-a ",
            " tap-b,",
            "--join takes both for one interface",
        ],
    );
    assert!(!message.contains("one direction: ") && !message.contains("few samples: "), "{message}");
    // The cause comes first, and what follows from it says so.
    let lines: Vec<&str> = message.lines().skip(1).collect();
    assert!(lines[0].starts_with("split over two interfaces: "), "{message}");
    assert_says(
        lines[1],
        &["not measured: 10 TCP flows (one_way): follows from that: each direction of a split flow counts"],
    );
    assert!(!message.contains("--rate-limit"), "{message}");
    #[cfg(feature = "live")]
    {
        let file = super::program::Temporary::new("tap.pcapng", &capture);
        let played = pping(&format!("top -r {} --once", file.path.display())).output().unwrap();
        assert_says(
            &stderr(&played),
            &["one direction at tap-a and the other at tap-b", "--join takes both for one interface"],
        );
    }
    // With --join each flow is whole again: as many samples as with one interface, of no interface and no direction.
    let joined = read(&capture, "--join --rate-limit 0");
    let whole = read(&pcap(&packets), "--rate-limit 0");
    assert!(!stderr(&joined).contains("split"), "{}", stderr(&joined));
    assert_eq!(rtts(&samples(&joined)), rtts(&samples(&whole)));
    // dumpcap writes what it has of one interface after the other.
    let mut disordered = [section(), interface(1, "tap-a"), interface(1, "tap-b")].concat();
    for packets in packets.chunks(20) {
        for of_client in [true, false] {
            for packet in packets.iter().filter(|packet| is_of_client(packet) == of_client) {
                disordered.extend(enhanced_packet(u32::from(of_client), packet, 0));
            }
        }
    }
    assert_eq!(rtts(&samples(&read(&disordered, "--join --rate-limit 0"))), rtts(&samples(&whole)));
    assert!(samples(&joined).len() >= 5 * 5);
    for sample in samples(&joined) {
        assert!(sample.get("interface").is_none() && sample.get("match_on_egress").is_none(), "{sample}");
    }
    // A router that is captured at both interfaces has both directions at each.
    let mut capture = [section(), interface(1, "eth0"), interface(1, "eth1")].concat();
    for packet in &packets {
        capture.extend([enhanced_packet(0, packet, 0), enhanced_packet(1, packet, 0)].concat());
    }
    let message = said(&capture);
    assert!(!message.contains("split") && !message.contains("copies"), "{message}");
}

#[test]
fn packets_that_came_twice_are_named() {
    let packets: Vec<Packet> = (0..5).flat_map(|port| connection(40_000 + port, START, 5, RTT)).collect();
    let copy = |packet: &Packet| Packet { at: packet.at + MILLISECOND, ..packet.clone() };
    let twice: Vec<Packet> = packets.iter().flat_map(|packet| [packet.clone(), copy(packet)]).collect();
    let count = packets.len();
    assert_says(
        &said(&pcap(&twice)),
        &[&format!("copies: {count} of {} packets", 2 * count), "--mirror leaves them out"],
    );
    assert!(!said(&pcap(&packets)).contains("copies"));
    // Each method gives the samples of the packets without copies.
    let [without, single] = [(&twice, "--mirror --rate-limit 0"), (&packets, "--rate-limit 0")]
        .map(|(packets, arguments)| read(&pcap(packets), arguments));
    assert_eq!(samples(&without), samples(&single));
    assert!(samples(&without).iter().any(|sample| sample["method"] == "tcp-handshake"));
    let message = stderr(&without);
    assert_says(&message, &[&format!("not measured: {count} packets (duplicate): ")]);
    assert!(!message.contains("copies: "), "{message}");
    // A shorter window lets these copies count.
    let message = stderr(&read(&pcap(&twice), "--mirror --copies-within 500us"));
    assert!(!message.contains("(duplicate)"), "{message}");
    // What is sent again after a while is no copy.
    let late = |packet: &Packet| Packet { at: packet.at + 3 * MILLISECOND, ..packet.clone() };
    let again: Vec<Packet> = packets.iter().flat_map(|packet| [packet.clone(), late(packet)]).collect();
    assert!(!said(&pcap(&again)).contains("copies"));
}

#[test]
fn tunnels_that_are_not_entered_are_named_with_their_option() {
    let golden = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden");
    for name in ["ipip", "gre", "vxlan", "geneve", "gtp-u", "erspan", "tzsp"] {
        let say = |decap: &str| {
            let mut command = pping(&format!("-r {name}.pcap --format none {decap}"));
            stderr(&command.current_dir(golden).output().unwrap())
        };
        assert_says(
            &say(""),
            &["packets in tunnels that pping did not enter;", &format!(", add --decap {name}\n")],
        );
        // What is inside decides, so nothing else is said of the packets around it.
        let said = say("");
        let cause = said.lines().nth(1).unwrap();
        assert!(cause.starts_with("not measured: ") && cause.contains("did not enter"), "{said}");
        assert!(!said.contains("one direction: "), "{said}");
        let entered = say(&format!("--decap {name}"));
        assert!(!entered.contains("did not enter"), "{entered}");
    }
}

/// A packet of VXLAN, from a port that depends on the flow inside.
fn vxlan(at: u64, port: u16, inner: &[u8]) -> Packet {
    let len = (8 + 8 + inner.len()) as u16;
    let mut datagram = [port, 4789, len, 0].map(u16::to_be_bytes).concat();
    datagram.extend([8, 0, 0, 0, 0, 0, 42, 0]);
    datagram.extend(inner);
    Packet { at, bytes: Ip::v4().frame(UDP, &datagram) }
}

#[test]
fn outer_tunnel_packets_are_reported() {
    let pings = pings(false, 10, |_| true);
    let tunnel: Vec<Packet> =
        (50_000..).zip(&pings).map(|(port, ping)| vxlan(ping.at, port, &ping.bytes)).collect();
    let message = said(&pcap(&tunnel));
    let lines: Vec<&str> = message.lines().skip(1).collect();
    assert_eq!(
        lines,
        [
            "not measured: 20 packets in tunnels that pping did not enter; to measure what is inside, add --decap vxlan"
        ]
    );
    // What else is not measured still counts.
    let message =
        said(&pcap(&[tunnel, vec![Packet { at: START, bytes: Ip::v4().frame(ESP, &[0; 32]) }]].concat()));
    assert_says(
        &message,
        &[
            "\nnot measured: 20 packets in tunnels",
            "\nnot measured: 1 packet (unsupported): ",
            "; harmless, but tunnels need --decap\n",
        ],
    );
}

#[test]
fn flows_that_nobody_answered_are_no_riddle() {
    const FLAGS: usize = 47;
    let first = |port| connection(port, START, 5, RTT).remove(0);
    let mut syn = first(40_000);
    syn.bytes[FLAGS] = 2;
    let message = said(&pcap(&[syn]));
    assert_says(&message, &["few samples: 0 of 1 TCP flows gave one; 1 was never answered"]);
    assert!(!message.contains("one_way"), "{message}");
}

#[test]
fn every_sample_is_taken_unless_a_limit_is_set() {
    let capture = pcap(&connection(40_000, START, 5, RTT));
    let of = |arguments| rtts(&samples(&read(&capture, arguments)));
    let (all, default) = (of("--rate-limit 0"), of(""));
    assert_eq!(default, all);
    assert!(of("--rate-limit 2500ms").len() < all.len());
}

#[test]
fn packets_that_pass_both_hooks_are_no_copies_of_a_mirror() {
    let capture = std::fs::read(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden/hooks.pcapng")).unwrap();
    let said = said(&capture);
    assert_says(
        &said,
        &["\nnot measured: 24 packets (other_hook): passed the other hook of the interface too", " lo, "],
    );
    assert!(!said.contains("copies:"), "{said}");
}

/// A ping a second, of which those with these sequence numbers are answered after [`RTT`].
fn pings(is_v6: bool, requests: u16, is_answered: impl Fn(u16) -> bool) -> Vec<Packet> {
    let ends = if is_v6 { [v6(1), v6(2)] } else { [v4(1), v4(2)] };
    let echoes = (0..requests).flat_map(|sequence| {
        let at = START + u64::from(sequence) * SECOND;
        let request = Packet { at, bytes: echo(ends[0], ends[1], 7, sequence, false) };
        let reply = Packet { at: at + RTT, bytes: echo(ends[1], ends[0], 7, sequence, true) };
        [Some(request), is_answered(sequence).then_some(reply)]
    });
    echoes.flatten().collect()
}

#[test]
fn pings_without_reply_are_counted() {
    for is_v6 in [false, true] {
        let message = said(&pcap(&pings(is_v6, 30, |sequence| !(3..8).contains(&sequence))));
        assert_says(&message, &["\nnot answered: 5 of 30 echo requests; look for loss"]);
        assert!(!said(&pcap(&pings(is_v6, 30, |_| true))).contains("not answered"));
    }
    // Those that were lost last count too, but the reply to the very last one may have come after the end.
    assert_says(
        &said(&pcap(&pings(false, 30, |sequence| sequence < 20))),
        &["not answered: 9 of 30 echo requests (1 more "],
    );
    // A reply that takes longer than 10 s is none.
    let mut late = pings(false, 30, |sequence| sequence != 4);
    late.push(Packet { at: START + 29 * SECOND + RTT, bytes: echo(v4(2), v4(1), 7, 4, true) });
    assert_says(&said(&pcap(&late)), &["not answered: 1 of 30 echo requests"]);
    // If replies were not captured, that is the reason.
    let message = said(&pcap(&pings(false, 30, |_| false)));
    assert_says(
        &message,
        &[
            "\none direction: the only flow or exchange has packets ",
            "not answered: 29 of 30 echo requests (1 more ",
            ": follows",
        ],
    );
    assert!(!message.contains("look for loss"), "{message}");
}

#[test]
fn queries_without_a_response_at_the_end_are_counted() {
    let query = |id: u16, is_response: bool| {
        let [client, server] = [v4(1), v4(2)];
        let at = START + u64::from(id) * SECOND / 2;
        let bytes = if is_response {
            Ip::between(server, client).frame(UDP, &dns((53, 4000), id, [0x81, 0x80], 12))
        } else {
            Ip::between(client, server).frame(UDP, &dns((4000, 53), id, [1, 0], 12))
        };
        Packet { at: at + if is_response { RTT } else { 0 }, bytes }
    };
    // Nine seconds, so that no query is given up.
    let queries = |is_answered: &dyn Fn(u16) -> bool| -> Vec<Packet> {
        (0..18)
            .flat_map(|id| [Some(query(id, false)), is_answered(id).then(|| query(id, true))])
            .flatten()
            .collect()
    };
    assert_says(
        &said(&pcap(&queries(&|id| id % 3 == 0))),
        &["\nnot answered: 10 of 18 DNS queries (2 more waited for less than a second at the end)\n"],
    );
    assert!(!said(&pcap(&queries(&|_| true))).contains("not answered"));
    assert!(
        !said(&pcap(&queries(&|id| id < 17))).contains("not answered"),
        "the response may have come later"
    );
    assert_says(
        &said(&pcap(&queries(&|_| false))),
        &[
            "not answered: 16 of 18 DNS queries (2 more waited for less than a second at the end): follows from that",
        ],
    );
}

#[test]
fn captures_without_directions_have_no_sides() {
    let packets = pings(false, 4, |_| true);
    let of = |arguments: &str| stderr(&read(&pcap(&packets), &format!("--format none {arguments}")));
    assert_says(&of("--arms two"), &["\nwithout sides: --arms two changes nothing here"]);
    assert!(!of("").contains("without sides"));
}

#[test]
fn copies_of_pings_are_not_unanswered() {
    let pings = pings(false, 30, |_| true);
    let copy = |packet: &Packet| Packet { at: packet.at + MILLISECOND, ..packet.clone() };
    let twice: Vec<Packet> = pings.iter().flat_map(|packet| [packet.clone(), copy(packet)]).collect();
    let message = said(&pcap(&twice));
    assert!(message.contains("copies: 60 of 120") && !message.contains("not answered"), "{message}");
}

#[test]
fn unusable_timestamps_name_the_option_that_helps() {
    let captures = again::captures();
    let capture = captures.iter().find(|capture| capture.samples == "unusable-timestamps").unwrap();
    let of = |arguments: &str| stderr(&read(&capture.bytes, &format!("--format none {arguments}")));
    assert_says(
        &of("--tcp-method ts"),
        &["packets (unusable_timestamp): ", "--tcp-method auto and --methods all, the defaults, measure it"],
    );
    let switched = of("");
    assert_says(&switched, &["\nswitched to tcp-seq: ", " of 9 TCP flows", "; --tcp-method seq measures it"]);
    assert!(!switched.contains("unusable_timestamp"), "{switched}");
    for arguments in ["--tcp-method seq", "--tcp-method both", "--tcp-method ts"] {
        assert!(!of(arguments).contains("switched"), "{arguments}");
    }
}
