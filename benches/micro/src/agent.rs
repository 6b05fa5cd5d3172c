//! What the agent does with samples: aggregates them, and writes records and pages.

use std::{
    hint::black_box,
    net::{IpAddr, Ipv4Addr},
    sync::Arc,
    time::{Duration, Instant},
};

use pping::{
    aggregate::Distribution,
    capture::Packet,
    config::Format,
    groups::{GroupName, SeriesName},
    metrics::{Encoding, Metrics, PageFormat},
    records::{Record, RttRecord, Tuple, format},
    replay::{Engine, Settings},
};
use pping_common::{
    abi::Emit,
    bytes::Captured,
    limits::DEFAULT_MAX_FLOWS,
    method::Method,
    parse::{Decap, Direction, LinkType},
    rtt::Rules,
    series::SeriesCounts,
};

use super::{
    Case,
    frames::{self, From, Version},
};

/// Groups on a page.
const GROUPS: u8 = 100;

/// The work for a packet of a capture, a record, an interval and a scrape.
pub(crate) fn cases() -> Vec<Case> {
    vec![
        replay(),
        add(),
        quantiles(),
        line("write a line of JSON", Format::Jsonl),
        line("write a line for people", Format::Standard),
        page(),
    ]
}

/// Parses a packet and finds its flow, and no more.
fn replay() -> Case {
    let bytes = frames::segment(Version::V4, From::Client, Some((7_000, 5_000)), 1448);
    let settings =
        Settings { emit: Emit::NOTHING, ..Settings::new(Rules::UNLIMITED, DEFAULT_MAX_FLOWS, Decap::NONE) };
    let mut engine = Engine::new(settings);
    Case::new("replay a segment that was sent before", move || {
        let captured = Captured { bytes: black_box(&bytes), frame_len: bytes.len() };
        engine.packet(&Packet {
            time: 1_700_000_000_000_000_000,
            interface: 0,
            link: LinkType::Ethernet,
            direction: Some(Direction::Ingress),
            bytes: captured,
        });
    })
}

fn add() -> Case {
    let (counts, mut distribution) = (counts(1), Distribution::default());
    Case::new("add counts to a distribution", move || {
        distribution.add(black_box(&counts));
        black_box(&distribution);
    })
}

fn quantiles() -> Case {
    let mut distribution = Distribution::default();
    distribution.add(&counts(1));
    Case::new("four percentiles of a distribution", move || {
        black_box(black_box(&distribution).quantiles([0.5, 0.9, 0.95, 0.99]));
    })
}

fn line(name: &'static str, format: Format) -> Case {
    let (record, mut encoder, mut written) = (Record::Rtt(sample()), format::encoder(format), Vec::new());
    Case::new(name, move || {
        written.clear();
        encoder.encode(black_box(&record), &mut written);
        black_box(&written);
    })
}

fn sample() -> RttRecord {
    let address = |last| IpAddr::from(Ipv4Addr::new(10, 77, 0, last));
    RttRecord {
        timestamp: 1_700_000_000_000_000_042,
        tuple: Tuple {
            src_network: None,
            dest_network: None,
            src_ip: address(2),
            src_port: 5201,
            dest_ip: address(1),
            dest_port: 33_866,
            protocol: "TCP",
        },
        rtt: 20_253_750,
        min_rtt: 19_997_001,
        sent_packets: 69,
        sent_bytes: 2_621_477,
        rec_packets: 65,
        rec_bytes: 0,
        matched: Some(Direction::Ingress),
        side: None,
        method: Method::TcpTs,
        interface: Some("eth0".into()),
        smoothed_rtt: 21_042_826,
        dns_id: None,
        side_rtt: None,
        vlan: Vec::new(),
        dscp: 0,
        group: None,
    }
}

fn page() -> Case {
    let metrics = Metrics::new(u32::from(GROUPS), Duration::from_mins(10));
    let slices: Vec<(SeriesName, SeriesCounts)> =
        (0..GROUPS).map(|number| (series(number), counts(number))).collect();
    metrics.add(&slices, Instant::now());
    Case::new("a page of metrics of 100 series", move || {
        // Without a change, the previous page would be served.
        metrics.add(&slices[..1], Instant::now());
        black_box(metrics.page(PageFormat::Classic, Encoding::Identity).bytes());
    })
}

fn series(number: u8) -> SeriesName {
    let prefix: Arc<str> = format!("100.64.{number}.0/24").into();
    let group = GroupName { prefix: Some(Arc::clone(&prefix)), ..GroupName::named(&prefix) };
    SeriesName {
        interface: Some("eth0".into()),
        method: Method::TcpTs,
        matched: Some(Direction::Ingress),
        side: None,
        group: Arc::new(group),
    }
}

/// Some samples around an RTT that depends on `number`.
fn counts(number: u8) -> SeriesCounts {
    let mut counts = SeriesCounts::EMPTY;
    for sample in 1..=20 {
        counts.sample(u64::from(number) * 997_331 + sample * sample * 250_000, 0);
    }
    counts
}
