//! Decides which samples a capture justifies, and which it demands.
//!
//! If two packets pass at the same time on two CPUs, the capture may not have their order. So a sample is justified by
//! any packets that passed within [`MAX_SKEW`] of the right ones. A wrong sample is wrong by at least a step of a
//! script, which is twice as long.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::{self, Write as _},
    net::IpAddr,
    time::Duration,
};

use super::{
    assignment::assign,
    seen::{Content, Host, Packet, Segment},
};
use crate::{
    frames::{ACK, FIN, RST, SYN},
    records::Sample,
};

/// Packets less than this apart may have passed in any order, and tcpdump may see a packet this late: a guest's CPU
/// stands still while the machine's CPUs are busy.
pub(super) const MAX_SKEW: Duration = Duration::from_millis(70);

/// The percentage of samples that may be later than that. One sample always may.
const LATE: usize = 1;

/// A step of a script can take ten seconds if the machine has no time for the guest. By then pping has given up DNS
/// queries, and other pending timestamps may be gone too. Samples longer than this are therefore not demanded.
const LIFETIME: Duration = Duration::from_secs(9);

/// Too late for a sample even if a CPU stood still.
const MAX_STALL: Duration = Duration::from_secs(2);

/// An identifier of a flow direction that the capture shows recorded and echoed.
#[derive(Clone, Debug)]
pub(super) struct Expected {
    pub(super) method: &'static str,
    /// The sender of the echo, and its receiver.
    pub(super) from: Host,
    pub(super) to: Host,
    pub(super) identifier: u32,
    pub(super) recorded_at: u64,
    pub(super) matched_at: u64,
    /// Whether the order of the packets in the capture demands the sample. Otherwise another order does.
    pub(super) is_demanded: bool,
}

type EndpointPair = (Host, Host);

/// The verdict on all samples.
#[derive(Debug, Default)]
pub(super) struct Verdict {
    pub(super) samples: usize,
    pub(super) due: usize,
    pub(super) right: usize,
    /// Samples that no packets justify, with the packets of their flow around them.
    pub(super) wrong: Vec<String>,
    pub(super) late: Vec<String>,
    /// Missing samples, by flow.
    pub(super) missing: BTreeMap<EndpointPair, Vec<Expected>>,
}

/// Compares samples with packets, both in order of time. `is_sparse` says whether the packets of a host's flows are far
/// apart.
pub(super) fn compare(all: &[Sample], packets: &[Packet], is_sparse: impl Fn(Host) -> bool) -> Verdict {
    let mut flows: BTreeMap<EndpointPair, Vec<Packet>> = BTreeMap::new();
    for packet in packets {
        flows.entry(flow_of(packet.from, packet.to)).or_default().push(*packet);
    }
    let mut samples_by_pair: BTreeMap<(String, EndpointPair), Vec<&Sample>> = BTreeMap::new();
    for sample in all {
        let tuple = &sample.tuple;
        let pair = ((tuple.src_ip, tuple.src_port), (tuple.dest_ip, tuple.dest_port));
        samples_by_pair.entry((sample.method.clone(), pair)).or_default().push(sample);
    }
    let mut expected: BTreeMap<(String, EndpointPair), Vec<Expected>> = BTreeMap::new();
    for packets in flows.values() {
        for one in in_flow(packets) {
            expected.entry((one.method.to_owned(), (one.from, one.to))).or_default().push(one);
        }
    }
    let mut verdict = Verdict { samples: all.len(), ..Verdict::default() };
    let keys: BTreeSet<_> = samples_by_pair.keys().chain(expected.keys()).cloned().collect();
    for key in keys {
        let (samples, mut expected) =
            (samples_by_pair.remove(&key).unwrap_or_default(), expected.remove(&key).unwrap_or_default());
        expected.sort_by_key(|it| it.matched_at);
        let flow = flow_of(key.1.0, key.1.1);
        let packets = flows.get(&flow).map_or(&[][..], Vec::as_slice);
        verdict.due += expected.iter().filter(|it| it.is_demanded).count();
        let near: Vec<_> = samples.iter().map(|sample| near(sample, &expected)).collect();
        let (is_right, is_found) = assign(&near, expected.len());
        verdict.right += is_right.iter().filter(|it| **it).count();
        for (sample, _) in samples.iter().zip(is_right).filter(|(_, is_right)| !is_right) {
            let is_of_flow = |it: &&Sample| {
                let tuple = &it.tuple;
                flow_of((tuple.src_ip, tuple.src_port), (tuple.dest_ip, tuple.dest_port)) == flow
            };
            let text = around(sample, &all.iter().filter(is_of_flow).collect::<Vec<_>>(), packets);
            let list = if is_wrong(sample, packets, is_sparse(flow.0)) {
                &mut verdict.wrong
            } else {
                &mut verdict.late
            };
            list.push(text);
        }
        let missing = expected.into_iter().zip(is_found).filter(|(it, is_found)| it.is_demanded && !is_found);
        let missing: Vec<_> = missing.map(|(it, _)| it).collect();
        if !missing.is_empty() {
            verdict.missing.entry(flow).or_default().extend(missing);
        }
    }
    if verdict.late.len() > (verdict.samples * LATE / 100).max(1) {
        verdict.wrong.append(&mut verdict.late);
    }
    verdict
}

/// Returns both endpoints in the same order for both directions.
pub(super) fn flow_of(one: Host, other: Host) -> EndpointPair {
    if one < other { (one, other) } else { (other, one) }
}

/// Returns the positions of the expected samples that may be this sample, the nearest first.
fn near(sample: &Sample, expected: &[Expected]) -> Vec<usize> {
    let max_skew = MAX_SKEW.as_nanos() as u64;
    let first = expected.partition_point(|it| it.matched_at + max_skew < sample.timestamp);
    let last = expected.partition_point(|it| it.matched_at <= sample.timestamp + max_skew);
    let mut near: Vec<_> =
        (first..last).filter_map(|at| Some((distance(sample, &expected[at])?, at))).collect();
    near.sort_unstable();
    near.into_iter().map(|(_, at)| at).collect()
}

/// Returns how far a sample is from an expected one, unless it exceeds [`MAX_SKEW`].
fn distance(sample: &Sample, expected: &Expected) -> Option<u64> {
    let recorded = sample.recorded_at().abs_diff(expected.recorded_at);
    let matched = sample.timestamp.abs_diff(expected.matched_at);
    (u128::from(recorded.max(matched)) <= MAX_SKEW.as_nanos()).then_some(recorded + matched)
}

/// True if an unjustified sample is wrong, and not merely late. It is wrong if two packets of a sparse flow passed at
/// its two times, or if no packet passed near its end. Otherwise a CPU stood still for long. In a conversation packets
/// pass all the time, so packets at those times prove nothing.
fn is_wrong(sample: &Sample, packets: &[Packet], is_sparse: bool) -> bool {
    // The recorded packet was sent by the host that the echo goes to.
    let is_at = |time: u64, address: IpAddr| {
        packets.iter().any(|packet| {
            packet.from.0 == address && u128::from(packet.at.abs_diff(time)) <= MAX_SKEW.as_nanos() / 2
        })
    };
    is_sparse
        && is_at(sample.recorded_at(), sample.tuple.dest_ip)
        && is_at(sample.timestamp, sample.tuple.src_ip)
        || packets
            .iter()
            .all(|packet| u128::from(packet.at.abs_diff(sample.timestamp)) > MAX_STALL.as_nanos())
}

/// Describes a sample, the other samples of its flow, and the packets around it.
fn around(sample: &Sample, of_flow: &[&Sample], packets: &[Packet]) -> String {
    let (recorded, matched) = (sample.recorded_at(), sample.timestamp);
    let margin = 400_000_000;
    let mut text =
        format!("{} of {:?}, {:.3} ms, recorded at 0:", sample.method, sample.tuple, sample.rtt as f64 / 1e6);
    let ms = |time: u64| (time as f64 - recorded as f64) / 1e6;
    for other in
        of_flow.iter().filter(|it| it.timestamp + margin > recorded && it.recorded_at() < matched + margin)
    {
        let (from, at) = (other.tuple.src_ip, other.recorded_at());
        let _infallible = write!(text, "\n    {:9.3} .. {:9.3} ms by {from}", ms(at), ms(other.timestamp));
    }
    for packet in packets.iter().filter(|it| it.at + margin > recorded && it.at < matched + margin) {
        let at = ms(packet.at);
        let (from, to) = (packet.from, packet.to);
        // Writing to a string cannot fail.
        let _infallible = write!(text, "\n    {at:9.3} ms {from:?} > {to:?} {}", packet.content);
    }
    text
}

impl fmt::Display for Content {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Segment(Segment { flags, sequence, acknowledgement, stamps, payload }) => {
                write!(f, "flags {flags:#04x} seq {sequence} ack {acknowledgement} {stamps:?} +{payload}")
            }
            other => write!(f, "{other:?}"),
        }
    }
}

/// Returns the samples to expect of a flow.
fn in_flow(packets: &[Packet]) -> Vec<Expected> {
    let mut expected = Vec::new();
    let endpoint_pairs: BTreeSet<EndpointPair> = packets.iter().map(|it| (it.from, it.to)).collect();
    let has_stamps = packets
        .iter()
        .any(|it| matches!(it.content, Content::Segment(segment) if segment.flags & SYN != 0 && segment.flags & ACK != 0 && segment.stamps.is_some()));
    for (from, to) in endpoint_pairs {
        let sent: Vec<_> = packets.iter().filter(|it| it.from == from && it.to == to).copied().collect();
        let back: Vec<_> = packets.iter().filter(|it| it.from == to && it.to == from).copied().collect();
        expected.extend(handshake(&sent, &back));
        if has_stamps {
            expected.extend(by_stamps(&sent, &back));
        } else {
            expected.extend(by_numbers(&sent, &back));
        }
        expected.extend(echoes(&sent, &back));
        expected.extend(queries(&sent, &back));
    }
    expected
}

fn segments(packets: &[Packet]) -> impl Iterator<Item = (&Packet, Segment)> {
    packets.iter().filter_map(|packet| match packet.content {
        Content::Segment(segment) if segment.flags & RST == 0 => Some((packet, segment)),
        _ => None,
    })
}

/// Returns the sample of an identifier that one packet recorded and another one echoed.
fn matched(method: &'static str, identifier: u32, recorded: &Packet, echo: &Packet) -> Expected {
    Expected {
        method,
        from: echo.from,
        to: echo.to,
        identifier,
        recorded_at: recorded.at,
        matched_at: echo.at,
        is_demanded: u128::from(echo.at.saturating_sub(recorded.at)) < LIFETIME.as_nanos(),
    }
}

fn is_newer(value: u32, than: u32) -> bool {
    value.wrapping_sub(than).wrapping_sub(1) < (1 << 31) - 1
}

fn consumed(segment: Segment) -> u32 {
    segment.payload + u32::from(segment.flags & SYN != 0) + u32::from(segment.flags & FIN != 0)
}

/// Returns the sample of a SYN and its first answer, unless the direction has several SYNs.
fn handshake(sent: &[Packet], back: &[Packet]) -> Option<Expected> {
    let syns: Vec<_> = segments(sent).filter(|(_, segment)| segment.flags & SYN != 0).collect();
    let [(syn, segment)] = syns[..] else { return None };
    let number = segment.sequence.wrapping_add(1);
    let is_answer = segment.flags & ACK != 0;
    let (answer, _) = segments(back).find(|(packet, answer)| {
        packet.at >= syn.at
            && answer.flags & ACK != 0
            && (answer.flags & SYN != 0) != is_answer
            && answer.acknowledgement == number
    })?;
    Some(matched("tcp-handshake", number, syn, answer))
}

fn by_stamps(sent: &[Packet], back: &[Packet]) -> Vec<Expected> {
    let (mut expected, mut newest) = (Vec::new(), None);
    let mut echoes: BTreeMap<u32, &Packet> = BTreeMap::new();
    for (packet, segment) in segments(back).filter(|(_, segment)| segment.flags & ACK != 0) {
        if let Some((_, tsecr)) = segment.stamps {
            echoes.entry(tsecr).or_insert(packet);
        }
    }
    // The first packet with each TSval. Packets with the same TSval at about the same time may have been recorded
    // instead.
    let mut firsts: BTreeMap<u32, &Packet> = BTreeMap::new();
    for (packet, segment) in segments(sent) {
        let Some((tsval, _)) = segment.stamps else { continue };
        let is_first = newest.is_none_or(|newest| is_newer(tsval, newest));
        let had_one = newest.is_some();
        if is_first {
            newest = Some(tsval);
            firsts.insert(tsval, packet);
        }
        let Some(first) = firsts.get(&tsval) else { continue };
        let is_within_skew = u128::from(packet.at.abs_diff(first.at)) <= MAX_SKEW.as_nanos();
        let may_be_recorded = consumed(segment) > 0 && segment.flags & SYN == 0 && had_one;
        let is_known = expected.iter().rev().take(16).any(|it: &Expected| it.identifier == tsval);
        if !(is_first || is_within_skew) || !may_be_recorded || is_known {
            continue;
        }
        if let Some(echo) = echoes.get(&tsval) {
            let expect = matched("tcp-ts", tsval, packet, echo);
            expected.push(Expected { is_demanded: is_first && expect.is_demanded, ..expect });
        }
    }
    expected
}

fn by_numbers(sent: &[Packet], back: &[Packet]) -> Vec<Expected> {
    let (mut expected, mut highest): (Vec<Expected>, Option<u32>) = (Vec::new(), None);
    let mut from = 0;
    let back: Vec<_> = segments(back).filter(|(_, segment)| segment.flags & ACK != 0).collect();
    for (packet, segment) in segments(sent) {
        if consumed(segment) == 0 {
            continue;
        }
        let end = segment.sequence.wrapping_add(consumed(segment));
        let known = highest;
        if known.is_some_and(|highest| !is_newer(end, highest)) {
            continue;
        }
        highest = Some(end);
        if segment.flags & SYN != 0 || known.is_none() {
            continue;
        }
        // The first acknowledgement of this end or a later one. It gives one sample, for the newest end that it covers.
        while back.get(from).is_some_and(|(echo, _)| echo.at < packet.at) {
            from += 1;
        }
        let echo = back[from..].iter().find(|(_, segment)| !is_newer(end, segment.acknowledgement));
        if let Some((echo, _)) = echo {
            if let Some(last) = expected.last_mut()
                && last.matched_at == echo.at
            {
                last.is_demanded = false;
            }
            expected.push(matched("tcp-seq", end, packet, echo));
        }
    }
    expected
}

fn echoes(sent: &[Packet], back: &[Packet]) -> Vec<Expected> {
    let of = |content| match content {
        Content::Echo { number, is_reply } => Some((number, is_reply)),
        _ => None,
    };
    pairs("icmp-echo", sent, back, of)
}

fn queries(sent: &[Packet], back: &[Packet]) -> Vec<Expected> {
    let of = |content| match content {
        Content::Dns { id, is_response } => Some((id, is_response)),
        _ => None,
    };
    pairs("dns", sent, back, of)
}

/// Returns the samples of requests and their first replies. `of` returns a packet's number and whether it is a reply.
fn pairs(
    method: &'static str,
    sent: &[Packet],
    back: &[Packet],
    of: impl Fn(Content) -> Option<(u16, bool)>,
) -> Vec<Expected> {
    let mut replies: BTreeMap<u16, &Packet> = BTreeMap::new();
    for packet in back {
        if let Some((number, true)) = of(packet.content) {
            replies.entry(number).or_insert(packet);
        }
    }
    let requests = sent.iter().filter_map(|packet| match of(packet.content) {
        Some((number, false)) => {
            replies.get(&number).map(|reply| matched(method, number.into(), packet, reply))
        }
        _ => None,
    });
    requests.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{frames::v4, records::Tuple};

    const MS: u64 = 1_000_000;

    /// A request at 1 s, its reply 200 ms later, and the same reply again after another 200 ms.
    fn packets() -> Vec<Packet> {
        let [near, far] = [1, 2].map(|host| (v4(host), 7));
        let echo = |at: u64, from, to, is_reply| Packet {
            at: at * MS,
            from,
            to,
            content: Content::Echo { number: 3, is_reply },
        };
        vec![echo(1000, near, far, false), echo(1200, far, near, true), echo(1400, far, near, true)]
    }

    fn compared(matched_at: u64, rtt: u64) -> Verdict {
        let sample = Sample {
            timestamp: matched_at * MS,
            tuple: Tuple { src_ip: v4(2), src_port: 7, dest_ip: v4(1), dest_port: 7 },
            protocol: "ICMP".to_owned(),
            rtt: rtt * MS,
            method: "icmp-echo".to_owned(),
            match_on_egress: false,
            interface: "cpu0".to_owned(),
            dns_id: None,
            side_rtt: None,
        };
        compare(&[sample], &packets(), |_| true)
    }

    #[test]
    fn a_sample_is_right_as_far_as_cpus_may_be_late() {
        for (matched_at, rtt) in [(1200, 200), (1230, 230), (1260, 210)] {
            let verdict = compared(matched_at, rtt);
            assert_eq!((verdict.right, verdict.wrong.len(), verdict.late.len()), (1, 0, 0), "{verdict:?}");
            assert!(verdict.missing.is_empty());
        }
    }

    #[test]
    fn a_sample_of_a_later_echo_is_wrong() {
        let verdict = compared(1400, 400);
        assert_eq!((verdict.right, verdict.wrong.len(), verdict.late.len()), (0, 1, 0), "{verdict:?}");
        assert_eq!(verdict.missing.values().map(Vec::len).sum::<usize>(), 1);
    }

    #[test]
    fn a_sample_far_from_any_packet_is_late() {
        let verdict = compared(1300, 300);
        assert_eq!((verdict.right, verdict.wrong.len(), verdict.late.len()), (0, 0, 1), "{verdict:?}");
    }
}
