//! What is special about the summary of a capture: why it gave few samples.

use std::fmt;

use clap::ValueEnum as _;
use pping_common::{abi::Counters, parse::Decap};

use super::count::Count;
use crate::{
    capture::Skipped,
    config::Tunnel,
    replay::{Echoes, Replayed, Surveyed, TcpFlows},
};

/// What a line says whose reason is the cause in a line before.
pub(super) const FOLLOWS: &str = ": follows from that, since no answer was captured with what it answers";

/// What to do about echo requests without a reply.
pub(super) const LOOK_FOR_LOSS: &str =
    "; look for loss or an outage, unless it is for hosts that do not answer, such as the hops of mtr";

/// What is wrong with a capture as a whole.
#[derive(Clone, Copy)]
pub(super) enum Cause {
    /// The two directions of flows are at different interfaces.
    Split,
    /// There is one direction only.
    OneDirection,
}

impl Replayed {
    /// What is wrong with the directions of this capture, if anything.
    pub(super) fn cause(&self) -> Option<Cause> {
        let Surveyed { conversations, one_sided, .. } = self.surveyed;
        if self.split.is_some() {
            Some(Cause::Split)
        } else {
            (conversations > 0 && one_sided == conversations).then_some(Cause::OneDirection)
        }
    }

    /// Whether its packets were captured twice.
    pub(super) fn has_copies(&self) -> bool {
        self.surveyed.copies.is_some()
    }

    /// Writes a line for each thing that is wrong with the capture as a whole.
    pub(super) fn write_causes(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.write_tunnels(f)?;
        self.write_copies(f)?;
        self.write_sides(f)
    }

    /// The counters as the summary has them: without the packets of tunnels, which have a line of their own, and with what was
    /// left at the end: DNS queries without a response, and open flows.
    pub(super) fn counted(&self, counters: &Counters) -> Counters {
        let mut counters = *counters;
        counters.dns_unanswered += self.queries_left.unanswered;
        counters.entries_deleted = counters.entries_made;
        for (packets, of_tunnels) in counters.untracked.iter_mut().zip(self.unopened_tunnels.by_reason) {
            *packets = packets.saturating_sub(of_tunnels);
        }
        counters
    }

    /// Writes a line for each reason why this capture gave fewer samples than its packets suggest.
    pub(super) fn write_missing(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.write_skipped(f)?;
        self.write_few_samples(f)?;
        self.write_switched(f)?;
        self.write_echoes(f)
    }

    fn write_skipped(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Skipped { link_type, interfaces, undescribed, timeless } = self.skipped;
        for (packets, why) in [
            (link_type, "of interfaces of a link type that pping does not know"),
            (interfaces, "of interfaces beyond the first 65536"),
            (undescribed, "of interfaces that the file does not describe"),
            (
                timeless,
                "without a time (simple packet blocks, or a time before 1970 or after 2262); write them with a time, \
                 as enhanced packet blocks",
            ),
        ] {
            if packets > 0 {
                writeln!(f, "left out: {} {why}", Count(packets, "packet"))?;
            }
        }
        Ok(())
    }

    fn write_tunnels(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let found: Vec<_> = Tunnel::value_variants()
            .iter()
            .filter_map(|tunnel| {
                let kind = Decap::EACH.iter().position(|&kind| kind == Decap::from(*tunnel))?;
                let packets = *self.unopened_tunnels.by_kind.get(kind)?;
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
            "not measured: {} in tunnels that pping did not enter; to measure what is inside, add --decap {}",
            Count(packets, "packet"),
            names.join(",")
        )
    }

    /// Says why fewer than half of the TCP flows gave a sample.
    fn write_few_samples(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let TcpFlows { all, measured, one_way, unanswered, still, .. } = self.tcp_flows;
        // The line about the interfaces says why, and counts a flow once, not once at each interface.
        if measured * 2 >= all || self.split.is_some() {
            return Ok(());
        }
        let rest = all.saturating_sub(measured + one_way + unanswered + still);
        let reasons = [
            (one_way, "had segments of one direction only"),
            (unanswered, if unanswered == 1 { "was never answered" } else { "were never answered" }),
            (still, "had timestamps that did not move"),
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
        if self.has_two_arms && self.surveyed.packets > 0 && !self.surveyed.has_directions {
            writeln!(
                f,
                "without sides: --arms two changes nothing here, since the capture does not say which packets went out, \
                 as pcapng and Linux cooked captures can"
            )?;
        }
        let Surveyed { conversations, split, .. } = self.surveyed;
        match (self.cause(), &self.split, split) {
            (_, Some([one, other]), Some((_, flows))) => writeln!(
                f,
                "split over two interfaces: {flows} of {conversations} flows have one direction at {one} and the other at \
                 {other}, as from a TAP, and are not measured; --join takes both for one interface"
            ),
            (Some(Cause::OneDirection), ..) => {
                let all = match conversations {
                    1 => "the only flow or exchange has".to_owned(),
                    all => format!("all {all} flows and exchanges have"),
                };
                writeln!(
                    f,
                    "one direction: {all} packets of one direction only; unless nobody answered, capture the other \
                     direction too"
                )
            }
            _ => Ok(()),
        }
    }

    /// Says how many flows were measured only once their timestamps were given up.
    fn write_switched(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let TcpFlows { all, switched, .. } = self.tcp_flows;
        if switched == 0 {
            return Ok(());
        }
        writeln!(
            f,
            "switched to tcp-seq: {switched} of {all} TCP flows, whose timestamps stood still, stopped or went back; what \
             came before the switch, up to 2 s of a flow, gave no or few samples; --tcp-method seq measures it"
        )
    }

    /// Says how many echo requests had no reply.
    fn write_echoes(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Echoes { requests, unanswered, undecided, given_up } = self.echoes;
        if given_up > 0 {
            writeln!(
                f,
                "given up: {given_up} of {requests} echo requests: more waited for their replies than there is room for"
            )?;
        }
        if unanswered == 0 {
            return Ok(());
        }
        let why = if self.cause().is_some() { FOLLOWS } else { LOOK_FOR_LOSS };
        write!(f, "not answered: {unanswered} of {requests} echo requests")?;
        if undecided > 0 {
            write!(f, " ({undecided} more waited for less than a second at the end)")?;
        }
        writeln!(f, "{why}")
    }

    /// Says if packets were captured twice.
    fn write_copies(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Surveyed { packets, copies: Some(copies), .. } = self.surveyed else { return Ok(()) };
        writeln!(
            f,
            "copies: {copies} of {packets} packets came a second time within 2 ms, as from a mirror of several ports: \
             tcp-ts, handshakes, pings and DNS give samples only if copies come within 1 ms, tcp-seq gives few, and each copy \
             of a segment counts as retransmitted; \
             --mirror leaves them out"
        )
    }
}
