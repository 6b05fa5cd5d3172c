//! Checks that every packet and every sample was counted exactly once.

use std::{
    collections::BTreeMap,
    thread,
    time::{Duration, Instant},
};

use anyhow::{Result, bail};
use pping_lab::{Namespace, Topology};

use super::{
    agent::Agent, counters::Counters, dial::Dial, findings::Findings, metrics::Page, scrape::Scraper,
};

/// More than two of the agent's rounds, which it makes once a second.
const TWO_ROUNDS: Duration = Duration::from_millis(2500);
const PATIENCE: Duration = Duration::from_mins(2);

/// How many packets and samples differ, which should be none, and of how many (`total_`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Differences {
    pub(super) packets: u64,
    pub(super) total_packets: u64,
    pub(super) samples: u64,
    pub(super) total_samples: u64,
    pub(super) replies: u64,
}

/// Reads the kernel's counters of each interface name.
pub(super) fn kernel(router: &Namespace, dial: &Dial<'_>) -> Result<BTreeMap<String, Counters>> {
    let mut counters = dial.counters()?;
    counters.extend(of_topology(router)?);
    Ok(counters)
}

/// Reads the kernel's counters of the interfaces that are always there.
pub(super) fn of_topology(router: &Namespace) -> Result<BTreeMap<String, Counters>> {
    let of = |name: &str| Ok((name.to_owned(), Counters::read(router, name)?));
    [Topology::LAN, Topology::WAN].into_iter().map(of).collect()
}

/// Returns what the kernel had counted of the interfaces that are always there before an agent started, whose metrics
/// these are.
pub(super) fn before(kernel: &BTreeMap<String, Counters>, page: &Page) -> BTreeMap<String, Counters> {
    let of = |name: &str| (name.to_owned(), kernel[name] - reported(page, name));
    [Topology::LAN, Topology::WAN].into_iter().map(of).collect()
}

/// Returns the kernel's counters and the agents' metrics at a time when no packets pass.
pub(super) fn read_when_idle(
    agents: &[(&Agent<'_>, &Scraper)],
    kernel: impl Fn() -> Result<BTreeMap<String, Counters>>,
    findings: &Findings,
) -> Result<(BTreeMap<String, Counters>, Vec<Page>)> {
    let deadline = Instant::now() + PATIENCE;
    while Instant::now() < deadline {
        let before = kernel()?;
        thread::sleep(TWO_ROUNDS);
        let mut pages = Vec::new();
        for (agent, scraper) in agents {
            pages.extend(scraper.scrape(agent, false, findings)?);
        }
        if kernel()? == before && pages.len() == agents.len() {
            return Ok((before, pages));
        }
    }
    bail!("packets still pass {PATIENCE:?} after all traffic ended")
}

/// Returns an agent's counters of the packets of an interface.
pub(super) fn reported(page: &Page, interface: &str) -> Counters {
    let packets =
        |direction| page.sum("pping_packets_total", &[("interface", interface), ("direction", direction)]);
    Counters { received: packets("ingress"), sent: packets("egress") }
}

/// Compares all metrics of an agent with what is known otherwise. `before` is what the kernel had counted before the
/// agent started.
pub(super) fn all(
    name: &str,
    page: &Page,
    kernel: &BTreeMap<String, Counters>,
    before: &BTreeMap<String, Counters>,
    (requests, replies): (u64, u64),
    findings: &Findings,
) -> Differences {
    let mut differences = Differences::default();
    for (interface, &counters) in kernel {
        let counted = counters - before.get(interface).copied().unwrap_or_default();
        let reported = reported(page, interface);
        differences.total_packets += reported.received + reported.sent;
        differences.packets +=
            counted.received.abs_diff(reported.received) + counted.sent.abs_diff(reported.sent);
        if counted != reported {
            findings
                .note(format!("{name}: {interface}: the kernel counted {counted:?}, and pping {reported:?}"));
        }
    }
    for interface in page.values("pping_samples_total", "interface") {
        for method in page.values("pping_samples_total", "method") {
            for matched in ["ingress", "egress"] {
                let labels = [("interface", &*interface), ("method", &*method), ("matched", matched)];
                let samples = page.sum("pping_samples_total", &labels);
                let of_groups = page.sum("pping_rtt_seconds_count", &labels);
                differences.total_samples += samples;
                differences.samples += samples.abs_diff(of_groups);
                if samples != of_groups {
                    findings
                        .note(format!("{name}: {labels:?}: {samples} samples, and {of_groups} in groups"));
                }
            }
        }
    }
    for (interface, matched) in [(Topology::WAN, "ingress"), (Topology::LAN, "egress")] {
        let labels = [("interface", interface), ("method", "icmp-echo"), ("matched", matched)];
        let samples = page.sum("pping_samples_total", &labels);
        // On a busy machine ping may end before a reply comes. pping measures that reply all the same.
        let missing = replies.saturating_sub(samples) + samples.saturating_sub(requests);
        differences.replies += missing;
        if missing > 0 {
            findings.note(format!(
                "{name}: {interface}: of {requests} requests {replies} replies came back, and {samples} were measured"
            ));
        }
    }
    for lost in ["pping_events_lost_total", "pping_groups_refused_total", "pping_unaggregated_samples_total"]
    {
        let lost_of_it = page.sum(lost, &[]);
        if lost_of_it > 0 {
            findings.note(format!("{name}: {lost} is {lost_of_it}"));
        }
    }
    differences
}
