//! Invalid captures end with an error or are skipped, in little time and memory.

use super::{
    made::{
        MILLISECOND, START, block, connection, enhanced_packet, interface, pcap, pcap_header, pcap_packet,
        section,
    },
    program::{Reader, assert_fails, read, samples, samples_so_far, stderr},
};

const RTT: u64 = 20 * MILLISECOND;

/// The most memory that such a capture may take, in bytes.
const MOST_MEMORY: u64 = 64 << 20;

#[test]
fn impossible_lengths_are_an_error_and_earlier_packets_count() {
    for claimed in [u32::MAX, u32::MAX - 3, 0x8000_0000, 1 << 25] {
        let mut capture = pcap(&connection(40_000, START, 5, RTT));
        capture.extend([0, 0, 0, 0, 0, 0, 0, 0]);
        capture.extend(claimed.to_le_bytes());
        capture.extend(claimed.to_le_bytes());
        capture.extend([0; 1000]);
        let output = read(&capture, "");
        assert_fails(&output, 1, &["corrupt", "claims", "; 10 packets were read"]);
        assert_eq!(samples_so_far(&output).len(), 6);
    }
}

#[test]
fn blocks_that_claim_more_than_the_file_has_are_an_error() {
    let packets = connection(40_000, START, 5, RTT);
    let start = [section(), interface(1, "eth0"), enhanced_packet(0, &packets[0], 0)].concat();
    // A packet, an interface, a section, a name, and an unknown block.
    for number in [6_u32, 1, 0x0a0d_0d0a, 4, 0x0bad] {
        for len in [0_u32, 8, 11, 13, 1 << 20, 1 << 30, u32::MAX - 3, u32::MAX] {
            let mut capture = start.clone();
            capture.extend(number.to_le_bytes());
            capture.extend(len.to_le_bytes());
            capture.extend([0x4d, 0x3c, 0x2b, 0x1a, 1, 0, 0, 0]);
            capture.extend([0; 40]);
            let output = read(&capture, "");
            assert_fails(&output, 1, &["; a packet was read before that"]);
        }
    }
}

#[test]
fn packets_that_leave_their_block_are_an_error() {
    for captured in [101_u32, 1 << 20, u32::MAX - 3, u32::MAX] {
        let words = [0, 0, 0, captured, captured];
        let mut body: Vec<u8> = words.into_iter().flat_map(u32::to_le_bytes).collect();
        body.resize(120, 0);
        for number in [2, 6] {
            let capture = [section(), interface(1, "eth0"), block(number, &body)].concat();
            assert_fails(&read(&capture, ""), 1, &["corrupt", "invalid packet lengths"]);
        }
    }
}

#[test]
fn a_packet_captured_beyond_its_length_is_read_as_captured() {
    let mut capture = pcap_header(1);
    for packet in connection(40_000, START, 5, RTT) {
        let mut record = pcap_packet(&packet);
        record[12..16].fill(0);
        capture.extend(record);
    }
    assert_eq!(samples(&read(&capture, "")).len(), 6);
}

#[test]
fn packets_of_undescribed_interfaces_are_left_out() {
    let packets = connection(40_000, START, 5, RTT);
    let mut capture = [section(), interface(1, "eth0")].concat();
    for (at, packet) in packets.iter().enumerate() {
        capture.extend(enhanced_packet(0, packet, 0));
        capture.extend(enhanced_packet(1 + at as u32 * 0x1000_0000, packet, 0));
    }
    let output = read(&capture, "");
    assert_eq!(samples(&output).len(), 6);
    assert!(stderr(&output).contains("left out: 10 packets"), "{}", stderr(&output));
}

#[test]
fn a_million_interfaces_take_little_memory() {
    let mut reader = Reader::start("--format none");
    reader.write(&section());
    let name = "n".repeat(255);
    let many: Vec<u8> = (0..1000).flat_map(|_| interface(1, &name)).collect();
    for _ in 0..1000 {
        reader.write(&many);
    }
    let packets = connection(40_000, START, 5, RTT);
    for packet in &packets {
        reader.write(&[enhanced_packet(999_999, packet, 0), enhanced_packet(7, packet, 0)].concat());
    }
    // Long enough for pping to have read everything before it.
    reader.write(&[many.clone(), many].concat());
    let memory = reader.peak_memory();
    let (status, said) = reader.finish();
    assert!(status == Some(0) && said.contains(" 10 packets, 6 samples"), "{said}");
    assert!(said.contains("left out: 10 packets"), "{said}");
    assert!(memory < MOST_MEMORY, "{memory} bytes");
}

#[test]
fn endless_options_take_little_memory() {
    let mut reader = Reader::start("--format none");
    reader.write(&[section(), interface(1, "eth0")].concat());
    let mut body = vec![0; 20];
    // Each option is empty, and none marks the end.
    body.extend([1, 0, 0, 0].repeat((1 << 18) - 16));
    for _ in 0..20 {
        reader.write(&block(6, &body));
    }
    let memory = reader.peak_memory();
    let (status, said) = reader.finish();
    assert!(status == Some(0) && said.contains(" 20 packets"), "{said}");
    assert!(memory < MOST_MEMORY, "{memory} bytes");
}

#[test]
fn endless_sections_take_little_memory() {
    let mut reader = Reader::start("--format none");
    let some: Vec<u8> = (0..1000)
        .flat_map(|at| [section(), interface(1, &format!("{at}-{}", "n".repeat(200)))].concat())
        .collect();
    for _ in 0..200 {
        reader.write(&some);
    }
    let memory = reader.peak_memory();
    assert_eq!(reader.finish().0, Some(0));
    assert!(memory < MOST_MEMORY, "{memory} bytes");
}
