//! A probe at a mirror port beside the router: it has to measure what the router measures, once, although each packet comes
//! to it twice.

use std::{
    fs,
    path::Path,
    sync::atomic::{AtomicU64, Ordering::Relaxed},
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, ensure};
use pping_lab::{
    Namespace, Topology,
    veth::{End, Offloads, connect},
};

use super::{agent::Agent, counters::Counters, findings::Findings, metrics::Page};

const TO_PROBE: &str = "mirror0";
const PORT: &str = "probe0";
const METHODS: [&str; 4] = ["tcp-ts", "tcp-seq", "tcp-handshake", "icmp-echo"];

/// The sides of the network, and which samples at the outer interface of the router are on it.
const SIDES: [(&str, &str); 2] = [("inside", "egress"), ("outside", "ingress")];

/// How many samples each packet may cost that is not matched because another CPU has its flow: all that is pending.
const LOST_AT_ONCE: u64 = 32;

/// More than two of the agent's rounds, which it makes once a second.
const TWO_ROUNDS: Duration = Duration::from_millis(2500);
const PATIENCE: Duration = Duration::from_mins(1);

/// The probe. The router sends it copies of all that passes its outer interface, and of what it forwards by its inner one.
pub(super) struct Mirror {
    probe: Namespace,
    /// What came to the probe before pping measured there.
    before: AtomicU64,
}

/// What the probe found.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Mirrored {
    /// Packets that came to the probe.
    pub(super) packets: u64,
    /// Of these, copies of others.
    pub(super) copies: u64,
    /// Samples of the probe.
    pub(super) samples: u64,
    /// Samples that only one of both has, more than packets that were not matched excuse.
    pub(super) differing: u64,
}

impl Mirror {
    pub(super) fn new(router: &Namespace) -> Result<Self> {
        let probe = Namespace::new("probe")?;
        connect(End::new(router, TO_PROBE), End::new(&probe, PORT), Offloads::On)?;
        let tc = |arguments: &str| pping_lab::run(router.command("tc").args(arguments.split_whitespace()));
        for interface in [Topology::WAN, Topology::LAN] {
            tc(&format!("qdisc add dev {interface} clsact"))?;
            for hook in ["ingress", "egress"] {
                tc(&format!(
                    "filter add dev {interface} {hook} protocol all u32 match u32 0 0 action mirred egress mirror dev {TO_PROBE}"
                ))?;
            }
        }
        Ok(Self { probe, before: AtomicU64::default() })
    }

    pub(super) fn probe(&self) -> &Namespace {
        &self.probe
    }

    /// Writes the configuration of the agent on the probe.
    pub(super) fn configure(config: &Path, listen: &str) -> Result<()> {
        let text = format!(
            "interface = [\"{PORT}\"]\nmirror = true\ncopies-within = \"5ms\"\n\
             inside = [\"10.11.1.0/24\", \"fd00:11:1::/64\"]\nrate-limit = \"0\"\nlisten = \"{listen}\"\nformat = \"none\"\n"
        );
        fs::write(config, text).with_context(|| format!("could not write {}", config.display()))
    }

    /// Takes what came to the probe before the agent there began to count.
    pub(super) fn begin(&self, agent: &Agent<'_>) -> Result<()> {
        let (counted, page) = self.read(agent)?;
        self.before.store(counted.saturating_sub(packets(&page)), Relaxed);
        Ok(())
    }

    /// Reads what the kernel counted, and the agent's metrics at a time when nothing comes to the probe.
    fn read(&self, agent: &Agent<'_>) -> Result<(u64, Page)> {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let counted = || Ok::<_, anyhow::Error>(Counters::read(&self.probe, PORT)?.received);
            let before = counted()?;
            thread::sleep(TWO_ROUNDS);
            let page = agent.scrape(false)?.context("the agent at the mirror port does not answer")?;
            if counted()? == before {
                return Ok((before, Page::read(&page)));
            }
            ensure!(Instant::now() < deadline, "packets still come to the mirror port after {PATIENCE:?}");
        }
    }

    /// Compares what the probe counted with the kernel's counters, and its samples with those of an agent on the router that
    /// measured as long.
    pub(super) fn compare(
        &self,
        agent: &Agent<'_>,
        of_router: &Page,
        findings: &Findings,
    ) -> Result<Mirrored> {
        let (counted, page) = self.read(agent)?;
        let (counted, packets) = (counted - self.before.load(Relaxed), packets(&page));
        if counted != packets {
            findings.note(format!("mirror: the kernel counted {counted} packets, and pping {packets}"));
        }
        let copies = page.sum("pping_untracked_packets_total", &[("reason", "duplicate")]);
        let mut mirrored = Mirrored { packets, copies, ..Mirrored::default() };
        let contended = |page: &Page| page.sum("pping_recordings_skipped_total", &[("reason", "contended")]);
        let excused = LOST_AT_ONCE * (contended(&page) + contended(of_router));
        for (side, matched) in SIDES {
            for method in METHODS {
                let name = "pping_rtt_seconds_count";
                let here = page.sum(name, &[("side", side), ("method", method)]);
                let labels = [("interface", Topology::WAN), ("matched", matched), ("method", method)];
                let there = of_router.sum(name, &labels);
                mirrored.samples += here;
                let differing = here.abs_diff(there).saturating_sub(excused);
                mirrored.differing += differing;
                if differing > 0 {
                    findings.note(format!(
                        "mirror: {side}, {method}: {here} samples, and {there} on the router ({excused} excused)"
                    ));
                }
            }
        }
        Ok(mirrored)
    }
}

/// The packets that the agent counted.
fn packets(page: &Page) -> u64 {
    page.sum("pping_packets_total", &[("interface", PORT)])
}
