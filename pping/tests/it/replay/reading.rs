//! Captures in all formats, and what is reported about them.

use std::io::Write as _;

use serde_json::Value;

use super::{
    made::{
        ETHERNET, MILLISECOND, Packet, SECOND, START, block, connection, enhanced_packet, interface, pcap,
        pcap_header, pcap_packet, section,
    },
    program::{Reader, assert_fails, pping, read, rtts, samples, samples_so_far, stderr},
};

const RTT: u64 = 20 * MILLISECOND + 3;

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

#[test]
fn a_capture_gives_its_samples_to_the_nanosecond() {
    let output = read(&pcap(&connection(40_000, START, 5, RTT)), "");
    let samples = samples(&output);
    assert_eq!(rtts(&samples), [RTT, SECOND - RTT, RTT, RTT, RTT, RTT]);
    let first = &samples[0];
    assert_eq!(first["timestamp"], START + RTT);
    assert_eq!((&first["src_ip"], &first["src_port"]), (&"198.51.100.2".into(), &443.into()));
    assert_eq!((&first["dest_ip"], &first["dest_port"]), (&"192.0.2.1".into(), &40_000.into()));
    // A pcap file has neither an interface nor a direction.
    assert_eq!((first.get("interface"), first.get("match_on_egress")), (None, None));
    let summary = stderr(&output);
    assert!(summary.starts_with("4.0 s, 10 packets, 6 samples, read in "), "{summary}");
    assert!(summary.contains("tcp-ts         -               4 samples  p50 20.0"), "{summary}");
}

#[test]
fn a_capture_may_be_compressed_in_parts_and_come_by_a_pipe() {
    let capture = pcap(&connection(40_000, START, 5, RTT));
    let (start, end) = capture.split_at(333);
    let zstd = |bytes: &[u8]| zstd::encode_all(bytes, 1).unwrap();
    for compressed in [
        capture.clone(),
        gzip(&capture),
        [gzip(start), gzip(end)].concat(),
        zstd(&capture),
        [zstd(start), zstd(end)].concat(),
    ] {
        assert_eq!(samples(&read(&compressed, "")).len(), 6);
        let mut reader = Reader::start("--format none");
        reader.write(&compressed);
        let (status, summary) = reader.finish();
        assert!(status == Some(0) && summary.contains(" 10 packets, 6 samples"), "{summary}");
    }
}

#[test]
fn a_capture_that_is_cut_short_keeps_its_samples() {
    let capture = pcap(&connection(40_000, START, 5, RTT));
    let cut = &capture[..capture.len() - 1];
    let compressed = gzip(&capture);
    for (bytes, least) in [(cut, 5), (&gzip(cut)[..], 5), (&compressed[..compressed.len() - 1], 5)] {
        let output = read(bytes, "");
        assert_fails(&output, 1, &["--read", "truncated", " packets were read", "samples, read in"]);
        assert!(samples_so_far(&output).len() >= least, "{}", stderr(&output));
    }
    assert_fails(&read(cut, ""), 1, &["; 9 packets were read"]);
    assert_fails(&read(cut, "--format none"), 1, &["9 packets, 5 samples"]);
}

#[test]
fn an_unsupported_link_type_is_named_by_number() {
    let mut capture = pcap_header(105);
    let packets = connection(40_000, START, 5, RTT);
    capture.extend(packets.iter().flat_map(pcap_packet));
    assert_fails(&read(&capture, ""), 1, &["link type 105", "802.11", "Ethernet (1)"]);
    // Flags about the frame check sequence, above the link type, change nothing.
    let mut capture = pcap_header(0x5400_0000 | ETHERNET);
    capture.extend(packets.iter().flat_map(pcap_packet));
    assert_eq!(samples(&read(&capture, "")).len(), 6);
    let only = [section(), interface(147, "eth0"), enhanced_packet(0, &packets[0], 0)].concat();
    assert_fails(&read(&only, ""), 1, &["link type 147"]);
}

#[test]
fn interfaces_have_their_names_and_packets_their_direction() {
    let packets = connection(40_000, START, 5, RTT);
    let mut capture = [section(), interface(105, "wlan0"), interface(1, "eth0"), interface(1, "")].concat();
    capture.extend(enhanced_packet(0, &packets[0], 0));
    // These blocks hold no packets.
    for number in [4, 5, 10, 0x0bad, 0x8000_0001] {
        capture.extend(block(number, &[7; 10]));
    }
    for (at, packet) in packets.iter().enumerate() {
        capture.extend(enhanced_packet(1, packet, 2 - at as u32 % 2));
        capture.extend(enhanced_packet(2, packet, 0));
    }
    // The next section has the same interfaces, as in joined files.
    capture.extend([section(), interface(105, "wlan0"), interface(1, "eth0")].concat());
    let later = connection(40_001, START + 10 * SECOND, 2, RTT);
    capture.extend(later.iter().flat_map(|packet| enhanced_packet(1, packet, 0)));

    let output = read(&capture, "");
    let samples = samples(&output);
    let of =
        |name: &str| samples.iter().filter(|sample| sample["interface"] == name).collect::<Vec<&Value>>();
    assert_eq!((of("eth0").len(), of("2").len(), samples.len()), (6 + 3, 6, 15));
    let directed = of("eth0").iter().map(|it| it.get("match_on_egress").cloned()).collect::<Vec<_>>();
    assert_eq!(directed[..2], [Some(false.into()), Some(true.into())]);
    assert!(directed[6..].iter().chain(&[of("2")[0].get("match_on_egress").cloned()]).all(Option::is_none));
    let said = stderr(&output);
    assert_eq!(said.matches("link type 105").count(), 1, "{said}");
    assert!(said.contains("left out: 1 packet of"), "{said}");
}

#[test]
fn the_rate_limit_counts_the_time_of_the_packets() {
    let capture = pcap(&connection(40_000, START, 10, RTT));
    assert_eq!(samples(&read(&capture, "--rate-limit 2500ms")).len(), 4 + 1);
    assert_eq!(samples(&read(&capture, "--rate-limit 0")).len(), 11);
}

#[test]
fn a_full_table_refuses_flows_and_reports_it() {
    let mut packets = connection(40_000, START, 3, RTT);
    packets.extend(connection(40_001, START + 1, 3, RTT));
    packets.sort_by_key(|packet| packet.at);
    let output = read(&pcap(&packets), "--max-flows 1");
    assert_eq!(samples(&output).len(), 4);
    assert!(stderr(&output).contains("--max-flows"), "{}", stderr(&output));
}

#[test]
fn payload_that_was_not_captured_counts() {
    const HEADERS: usize = 14 + 20 + 32;
    let packets = connection(40_000, START, 5, RTT);
    let whole = samples(&read(&pcap(&packets), "--rate-limit 0"));
    let mut cut = pcap_header(ETHERNET);
    for packet in &packets {
        let mut bytes = packet.bytes[..HEADERS].to_vec();
        // The network card will split this segment: the IP length is 0, and the frame's length counts.
        bytes[16..18].fill(0);
        let mut record = pcap_packet(&Packet { bytes, ..*packet });
        record[12..16].copy_from_slice(&(packet.bytes.len() as u32).to_le_bytes());
        cut.extend(record);
    }
    assert_eq!(samples(&read(&cut, "--rate-limit 0")), whole);
    assert!(whole.iter().any(|sample| sample["sent_bytes"].as_u64() > Some(0)));
}

#[test]
fn unmeasured_packets_are_counted_by_reason() {
    let golden = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden");
    for (arguments, reason) in [
        ("-r nested.pcap --decap ipip,gre,vxlan,geneve,gtp-u,erspan,tzsp", "nested_tunnel"),
        ("-r vxlan.pcap", "unsupported"),
        ("-r fragments.pcap", "fragment"),
    ] {
        let output = pping(&format!("{arguments} --format none")).current_dir(golden).output().unwrap();
        let summary = stderr(&output);
        let line = |line: &str| {
            line.starts_with("not measured: ") && line.contains(&format!(" packets ({reason}): "))
        };
        assert!(summary.lines().any(line), "{summary}");
    }
}
