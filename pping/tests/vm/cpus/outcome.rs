//! Results of a run, and whether they are right.

use std::{collections::BTreeMap, net::IpAddr};

use serde_json::Value;

use super::{
    super::records::Sample,
    cable::NEAR,
    comparison::{Expected, Verdict, compare, flow_of},
    counted::Counted,
    seen::{self, Host, Packet},
};

/// How many samples an unmatched packet can cost at most in a flow of a script: six pending echoes in each direction;
/// with TCP, three in each direction, its own, and the first of the next tick in both.
const LOST_OF_SCRIPT: usize = 12;
/// The same in a conversation, where eight can be pending in each direction.
const LOST_OF_CONVERSATION: usize = 20;
/// One in this many samples of a conversation may be missing besides. Kernels delay acknowledgements and retransmit,
/// and then much depends on the order of packets on two CPUs, which tcpdump may see differently.
const ONE_REORDERED_IN: usize = 100;

/// The results of a run.
pub(super) struct Outcome {
    pub(super) samples: Vec<Sample>,
    pub(super) summaries: Vec<Value>,
    pub(super) packets: Vec<Packet>,
    pub(super) before: Counted,
    pub(super) after: Counted,
    /// The last messages of pping.
    pub(super) said: String,
}

pub(super) fn records(lines: &str) -> (Vec<Sample>, Vec<Value>) {
    let (mut samples, mut summaries) = (Vec::new(), Vec::new());
    for line in lines.lines() {
        let value: Value = serde_json::from_str(line).unwrap();
        match value["flow_event"].as_str() {
            Some("summary") => summaries.push(value),
            None if value["interface"] == NEAR => samples.push(serde_json::from_value(value).unwrap()),
            _ => {}
        }
    }
    (samples, summaries)
}

impl Outcome {
    /// Returns the difference of a counter.
    fn of(&self, count: impl Fn(&Counted) -> usize) -> usize {
        count(&self.after) - count(&self.before)
    }

    fn contended(&self) -> usize {
        self.of(|it| it.skipped("contended"))
    }

    /// Asserts that pping has counted each packet, as the kernel and tcpdump have.
    pub(super) fn assert_all_counted(&self) {
        let said = &self.said;
        let (counted, passed) = (self.after.counted(&self.before), self.after.passed(&self.before));
        assert_eq!(counted, passed, "packets received and sent, by pping and by the kernel; {said}");
        let tcp = [("interface", NEAR), ("protocol", "tcp")];
        let counted = self.of(|it| it.sum("pping_packets_total", &tcp) as usize);
        let captured =
            self.packets.iter().filter(|it| matches!(it.content, seen::Content::Segment(_))).count();
        assert_eq!(counted, captured, "segments by pping and by tcpdump; {said}");

        let samples = self.of(|it| it.sum("pping_samples_total", &[("interface", NEAR)]) as usize);
        let lost = self.of(|it| it.sum("pping_events_lost_total", &[]) as usize);
        assert_eq!(self.samples.len() + lost, samples, "samples written, lost and counted; {said}");
        let in_groups = self.of(|it| it.sum("pping_rtt_seconds_count", &[("interface", NEAR)]) as usize);
        let in_none = self.of(|it| it.sum("pping_unaggregated_samples_total", &[]) as usize);
        assert_eq!(in_groups + in_none, samples, "samples in groups, in none and counted; {said}");
    }

    /// Asserts that the packets of each flow are counted for that flow.
    pub(super) fn assert_flows_agree(&self) {
        let mut differences: BTreeMap<(Host, Host), i64> = BTreeMap::new();
        for packet in &self.packets {
            if is_judged(packet) && !matches!(packet.content, seen::Content::Dns { .. }) {
                *differences.entry((packet.from, packet.to)).or_default() -= 1;
            }
        }
        let captured: i64 = differences.values().sum();
        for summary in self.summaries.iter().filter(|it| it["interface"] == NEAR) {
            let host = |address: &str, port: &str| -> Host {
                (summary[address].as_str().unwrap().parse().unwrap(), summary[port].as_u64().unwrap() as u16)
            };
            let (source, destination) = (host("src_ip", "src_port"), host("dest_ip", "dest_port"));
            for (way, packets) in
                [((destination, source), "sent_packets"), ((source, destination), "rec_packets")]
            {
                if let Some(difference) = differences.get_mut(&way) {
                    *difference += summary[packets].as_i64().unwrap();
                }
            }
        }
        let off: i64 = differences.values().map(|it| it.abs()).sum();
        let named: Vec<_> = differences.iter().filter(|(_, difference)| **difference != 0).collect();
        println!(
            "packets of flows: {} captured, {off} not in summaries, {} contended",
            -captured,
            self.contended()
        );
        assert!(off as usize <= self.contended(), "packets more or less than captured: {named:#?}");
    }

    /// Asserts that no sample is wrong, and that skipped packets explain the missing samples.
    pub(super) fn assert_samples_agree(&self) {
        let Verdict { samples, due, right, wrong, late, missing } =
            compare(&self.samples, &self.packets, is_of_script);
        let (contended, full) = (self.contended(), self.of(|it| it.skipped("slots_full")));
        let lost = self.of(|it| it.sum("pping_events_lost_total", &[("kind", "rtt")]) as usize);
        let missing = missing.into_iter().filter(|(flow, _)| is_judged_host(flow.0));
        let (of_scripts, of_conversations): (Vec<_>, Vec<_>) =
            missing.partition(|(flow, _)| is_of_script(flow.0));
        let count = |of: &[(_, Vec<Expected>)]| of.iter().map(|(_, missing)| missing.len()).sum::<usize>();
        // The least number of unmatched packets that explains the missing samples. Each packet belongs to one flow.
        let misses = |of: &[(_, Vec<Expected>)], most: usize| -> usize {
            of.iter().map(|(_, missing)| missing.len().div_ceil(most)).sum()
        };
        let refused =
            self.of(|it| it.sum("pping_untracked_packets_total", &[("reason", "map_full")]) as usize);
        let evicted = self.of(|it| it.sum("pping_flows_pushed_out_total", &[]) as usize);
        println!(
            "{} packets, {samples} samples: {right} right, {} wrong, {} late; of {due} due {} of scripts and {} of \
             conversations are missing; {contended} contended, {full} without a slot, {lost} lost, {refused} refused, \
             {evicted} evicted",
            self.packets.len(),
            wrong.len(),
            late.len(),
            count(&of_scripts),
            count(&of_conversations),
        );
        for (flow, missing) in of_scripts.iter().chain(&of_conversations).take(20) {
            let first = missing[0].recorded_at;
            let at = |it: &Expected| {
                let ms = |time: u64| (time as f64 - first as f64) / 1e6;
                format!("{} {} {:.1}..{:.1}", it.method, it.identifier, ms(it.recorded_at), ms(it.matched_at))
            };
            println!("missing of {flow:?}, in ms: {}", missing.iter().map(at).collect::<Vec<_>>().join(", "));
        }
        for late in late.iter().take(3) {
            println!("late: {late}");
        }
        assert!(
            wrong.is_empty(),
            "{} wrong samples: {}",
            wrong.len(),
            wrong[..wrong.len().min(5)].join("\n")
        );
        let skipped = contended + full + lost + late.len();
        let least = misses(&of_scripts, LOST_OF_SCRIPT);
        assert!(
            least <= skipped,
            "what is missing of scripts takes {least} packets that were not matched, and {skipped} are counted"
        );
        assert!(
            count(&of_conversations) <= right / ONE_REORDERED_IN + (skipped - least) * LOST_OF_CONVERSATION,
            "too many samples of conversations are missing, with {skipped} packets counted that were not matched"
        );
        assert!(right > 500 && refused > 0 && evicted > 0, "too little happened to judge by");
    }
}

/// True for hosts of scripts and conversations. The crowd's flows only serve as a disturbance.
fn is_judged_host(host: Host) -> bool {
    let is_crowd = matches!(host.0, IpAddr::V4(address) if address.octets()[..3] == [192, 0, 2] && address.octets()[3] >= 20);
    !is_crowd
}

fn is_judged(packet: &Packet) -> bool {
    let (one, _) = flow_of(packet.from, packet.to);
    is_judged_host(one) && !matches!(packet.content, seen::Content::Other)
}

/// True if a flow is one of a script.
fn is_of_script(host: Host) -> bool {
    let is_of = |address: IpAddr| match address {
        IpAddr::V4(address) => address.octets()[..3] == [192, 0, 2],
        IpAddr::V6(address) => address.segments()[..2] == [0x2001, 0xdb8],
    };
    is_of(host.0)
}
