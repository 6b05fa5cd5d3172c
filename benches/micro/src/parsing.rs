//! Parses a frame, and finds the bucket of its flow.

use std::hint::black_box;

use pping_common::{
    flow::FlowKey,
    hash::TableKeys,
    parse::{Address, Frame, Ipv4, Ipv6, Kind},
    table::{Candidates, bucket_count},
};

use super::{
    Case,
    frames::{self, From, Version},
};

const TIMESTAMPS: Option<(u32, u32)> = Some((7_000, 5_000));

pub(crate) fn cases() -> Vec<Case> {
    let segment = |version, timestamps| frames::segment(version, From::Client, timestamps, 1448);
    let (v4, v6) = (segment(Version::V4, TIMESTAMPS), segment(Version::V6, TIMESTAMPS));
    vec![
        candidates::<Ipv4>("candidate buckets of a flow, IPv4", &v4),
        candidates::<Ipv6>("candidate buckets of a flow, IPv6", &v6),
        parse("parse TCP with timestamps, IPv4", Kind::Tcp, v4),
        parse("parse TCP with timestamps, IPv6", Kind::Tcp, v6),
        parse("parse TCP without timestamps", Kind::Tcp, segment(Version::V4, None)),
        parse("parse QUIC, short header", Kind::Quic, frames::quic_short()),
        parse("parse QUIC, Initial", Kind::Quic, frames::quic_initial()),
        parse("parse a DNS query", Kind::Dns, frames::dns_query()),
    ]
}

fn parse(name: &'static str, kind: Kind, bytes: Vec<u8>) -> Case {
    let mut frame = frames::parsed(&bytes);
    assert_eq!(frame.transport.kind, kind, "{name}");
    Case::new(name, move || {
        let _accepted = black_box(frames::parse(black_box(&bytes), &mut frame));
        black_box(&frame);
    })
}

fn candidates<A: Address>(name: &'static str, bytes: &[u8]) -> Case {
    let frame: Frame = frames::parsed(bytes);
    let (keys, buckets) = (TableKeys::random(|| 0x0123_4567_89ab_cdef), bucket_count(131_072));
    Case::new(name, move || {
        let (key, endpoint) = FlowKey::<A>::new(black_box(1), black_box(&frame));
        black_box((Candidates::of(&key, black_box(&keys), black_box(buckets)), endpoint));
    })
}
