//! What is special about the summary of a capture: why it gave few samples.

use std::{fmt, time::Duration};

use clap::ValueEnum as _;
use pping_common::parse::Decap;

use crate::{
    Error,
    capture::Skipped,
    config::Tunnel,
    replay::{Surveyed, TcpFlows},
};

/// A capture that was read.
#[derive(Debug)]
pub struct Replayed {
    /// The time from its oldest packet to its newest.
    pub span: Duration,
    /// Packets that were skipped.
    pub skipped: Skipped,
    /// Its TCP flows.
    pub tcp_flows: TcpFlows,
    /// What its first packets show.
    pub surveyed: Surveyed,
    /// The names of the interfaces over which its flows are split, if they are.
    pub split: Option<[String; 2]>,
    /// Packets of tunnels that were not entered, by the index of their kind in [`Decap::EACH`].
    pub unopened_tunnels: [u64; Decap::EACH.len()],
    /// Why reading stopped before the end of the capture, if it did.
    pub fault: Option<Error>,
}

impl Replayed {
    /// Writes a line for each reason why this capture gave fewer samples than its packets suggest.
    pub(super) fn write_missing(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.write_skipped(f)?;
        self.write_tunnels(f)?;
        self.write_few_samples(f)?;
        self.write_sides(f)?;
        self.write_copies(f)
    }

    fn write_skipped(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Skipped { link_type, interfaces, undescribed, timeless } = self.skipped;
        for (packets, why) in [
            (link_type, "of interfaces of a link type that pping does not know"),
            (interfaces, "of interfaces beyond the first 65536"),
            (undescribed, "of interfaces that the file does not describe"),
            (
                timeless,
                "without a time (simple packet blocks); write them with a time, as enhanced packet blocks",
            ),
        ] {
            if packets > 0 {
                writeln!(f, "left out: {packets} packets {why}")?;
            }
        }
        Ok(())
    }

    fn write_tunnels(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let found: Vec<_> = Tunnel::value_variants()
            .iter()
            .filter_map(|tunnel| {
                let kind = Decap::EACH.iter().position(|&kind| kind == Decap::from(*tunnel))?;
                let packets = *self.unopened_tunnels.get(kind)?;
                let name = tunnel.to_possible_value()?.get_name().to_owned();
                (packets > 0).then_some((name, packets))
            })
            .collect();
        if found.is_empty() {
            return Ok(());
        }
        let packets: u64 = found.iter().map(|(_, packets)| packets).sum();
        let names: Vec<_> = found.into_iter().map(|(name, _)| name).collect();
        writeln!(
            f,
            "not measured: {packets} packets in tunnels that pping did not enter; to measure what is inside, add --decap {}",
            names.join(",")
        )
    }

    /// Says why fewer than half of the TCP flows gave a sample.
    fn write_few_samples(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let TcpFlows { all, measured, one_way, unanswered } = self.tcp_flows;
        if measured * 2 >= all {
            return Ok(());
        }
        let rest = all.saturating_sub(measured + one_way + unanswered);
        let reasons = [
            (one_way, "had segments of one direction only"),
            (unanswered, "were never answered"),
            (
                rest,
                "had nothing that could be timed: nothing was sent and then acknowledged for the first time",
            ),
        ];
        let reasons: Vec<_> = reasons
            .iter()
            .filter(|(flows, _)| *flows > 0)
            .map(|(flows, why)| format!("{flows} {why}"))
            .collect();
        writeln!(f, "few samples: {measured} of {all} TCP flows gave one; {}", reasons.join(", "))
    }

    /// Says if the two directions of flows were captured apart.
    fn write_sides(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Surveyed { conversations, one_sided, split, .. } = self.surveyed;
        if let (Some([one, other]), Some((_, flows))) = (&self.split, split) {
            writeln!(
                f,
                "split over two interfaces: {flows} of {conversations} flows have one direction at {one} and the other at \
                 {other}, as from a TAP, and are not measured; put both into one interface first: \
                 editcap -F pcap FILE joined.pcap"
            )?;
        } else if conversations > 0 && one_sided == conversations {
            writeln!(
                f,
                "one direction: all {conversations} flows and exchanges have packets of one direction only; unless nobody \
                 answered, capture the other direction too"
            )?;
        }
        Ok(())
    }

    /// Says if packets were captured twice.
    fn write_copies(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Surveyed { packets, copies: Some(copies), .. } = self.surveyed else { return Ok(()) };
        writeln!(
            f,
            "copies: {copies} of {packets} packets came a second time within 2 ms, as from a mirror of several ports: DNS, \
             handshakes and tcp-seq give few samples then, and each copy of a segment counts as retransmitted; remove \
             them first: editcap -w 0.002 FILE single.pcap"
        )
    }
}
