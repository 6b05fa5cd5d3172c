//! The samples of each open flow, for its summary.

use std::collections::HashMap;

use foldhash::fast::RandomState;
use pping_common::{
    abi::{Endpoints, RttEvent},
    group::Side,
    hist,
    limits::{IDLE_SECONDS, SECOND},
    method::Method,
};
use serde::Serialize;

use super::range::rtt_at;

/// A flow direction is discarded after this time without a sample, ns: the event that reports the end of its flow may have been lost.
const LIFETIME: u64 = 4 * IDLE_SECONDS as u64 * SECOND;

/// A flow direction, by its endpoints.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct Key {
    source: [u8; 16],
    destination: [u8; 16],
    ports: [u16; 2],
    interface: u16,
    protocol: u8,
}

impl From<&Endpoints> for Key {
    fn from(endpoints: &Endpoints) -> Self {
        let &Endpoints { source, destination, source_port, destination_port, .. } = endpoints;
        let Endpoints { interface, protocol, .. } = *endpoints;
        Self { source, destination, ports: [source_port, destination_port], interface, protocol }
    }
}

/// Number of RTT samples and their distribution, ns. Percentiles are accurate to within 4.4 %.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Rtts {
    /// Number of samples.
    #[cfg_attr(test, schemars(range(min = 1)))]
    pub samples: u64,
    /// The lowest.
    pub min: u64,
    /// The mean.
    pub mean: u64,
    /// The median.
    pub p50: u64,
    /// The 90th percentile.
    pub p90: u64,
    /// The 99th percentile.
    pub p99: u64,
    /// The highest.
    pub max: u64,
}

/// The RTTs to one host of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HostRtts {
    /// Its side of the network, if sides are told apart.
    pub side: Option<Side>,
    /// The RTTs.
    pub rtts: Rtts,
}

/// The samples of all flow directions whose flow has not ended.
#[derive(Default)]
pub(crate) struct FlowSamples {
    directions: HashMap<Key, Samples, RandomState>,
    /// The highest number of flow directions.
    capacity: usize,
    /// The earliest time to look again for flow directions to discard, ns.
    next_expiry: u64,
    /// Samples refused because the table was full.
    refused: u64,
}

/// The samples of a flow direction. Only bins with samples are kept.
#[derive(Default)]
struct Samples {
    count: u64,
    sum: u128,
    min: u64,
    max: u64,
    last: u64,
    /// The side of the host that replies, if sides are told apart.
    side: Option<Side>,
    /// Index and count of bins with samples, in order.
    bins: Vec<(u8, u32)>,
}

impl FlowSamples {
    /// Creates a table with room for both directions of `flows` flows.
    pub(crate) fn with_room_for(flows: usize) -> Self {
        Self { capacity: flows.saturating_mul(2), ..Self::default() }
    }

    /// Adds a sample of a host on this side. DNS samples are ignored: they belong to no flow.
    pub(crate) fn sample(&mut self, event: &RttEvent, side: Option<Side>) {
        if event.method == Method::Dns as u8 {
            return;
        }
        let key = Key::from(&event.endpoints);
        if self.directions.len() >= self.capacity && !self.directions.contains_key(&key) {
            self.make_room(event.timestamp);
            if self.directions.len() >= self.capacity {
                if self.refused == 0 {
                    tracing::warn!("flow summaries miss samples: there are more flows than --max-flows");
                }
                self.refused += 1;
                return;
            }
        }
        let samples = self.directions.entry(key).or_default();
        samples.take(event.rtt, event.timestamp);
        samples.side = side;
    }

    /// Removes a flow. Returns the summary of the flow direction that `endpoints` name, then that of the reverse.
    pub(crate) fn end(&mut self, endpoints: &Endpoints) -> [Option<HostRtts>; 2] {
        [*endpoints, endpoints.reversed()].map(|endpoints| {
            let samples = self.directions.remove(&Key::from(&endpoints))?;
            Some(HostRtts { side: samples.side, rtts: samples.rtts() })
        })
    }

    fn make_room(&mut self, now: u64) {
        if now < self.next_expiry {
            return;
        }
        self.next_expiry = now.saturating_add(SECOND);
        self.directions.retain(|_, samples| now.saturating_sub(samples.last) < LIFETIME);
    }
}

impl Samples {
    fn take(&mut self, rtt: u64, at: u64) {
        self.min = if self.count == 0 { rtt } else { self.min.min(rtt) };
        self.max = self.max.max(rtt);
        self.count += 1;
        self.sum += u128::from(rtt);
        self.last = at;
        // There are at most 256 bins: see the assertion below.
        let bin = hist::bin(rtt) as u8;
        match self.bins.binary_search_by_key(&bin, |&(bin, _)| bin) {
            Ok(index) => self.bins[index].1 = self.bins[index].1.saturating_add(1),
            Err(index) => self.bins.insert(index, (bin, 1)),
        }
    }

    fn rtts(&self) -> Rtts {
        let quantile = |part: f64| {
            let rank = (part * self.count as f64).ceil() as u64;
            let bins = self.bins.iter().map(|&(bin, count)| (usize::from(bin), count.into()));
            rtt_at(rank, bins, (self.min, self.max))
        };
        Rtts {
            samples: self.count,
            min: self.min,
            mean: self.sum.checked_div(u128::from(self.count)).unwrap_or_default() as u64,
            p50: quantile(0.5),
            p90: quantile(0.9),
            p99: quantile(0.99),
            max: self.max,
        }
    }
}

const _: () = assert!(hist::BINS <= 256);

#[cfg(test)]
mod tests {
    use pping_common::{
        abi::EventKind,
        parse::{Protocol, Vlan},
    };

    use super::*;

    fn endpoints(port: u16) -> Endpoints {
        Endpoints {
            source: [1; 16],
            destination: [2; 16],
            source_port: 443,
            destination_port: port,
            interface: 0,
            protocol: Protocol::Tcp as u8,
            reserved: 0,
        }
    }

    fn sample(endpoints: Endpoints, timestamp: u64, rtt: u64) -> RttEvent {
        RttEvent {
            kind: EventKind::Rtt as u8,
            method: 0,
            direction: 0,
            dscp: 0,
            identifier: 0,
            timestamp,
            endpoints,
            rtt,
            min_rtt: rtt,
            smoothed_rtt: rtt,
            sent_packets: 0,
            sent_bytes: 0,
            rec_packets: 0,
            rec_bytes: 0,
            vlan: Vlan::NONE,
            series: RttEvent::NO_SERIES,
            reserved: 0,
            side_rtt: 0,
        }
    }

    #[test]
    fn a_flow_ends_with_the_samples_of_both_directions() {
        let mut flows = FlowSamples::with_room_for(10);
        let flow = endpoints(1);
        for ms in 1..=100 {
            flows.sample(&sample(flow, ms, ms * 1_000_000), None);
        }
        flows.sample(&sample(flow.reversed(), 5, 7), None);
        flows.sample(&sample(endpoints(2), 5, 8), None);
        let [source, destination] = flows.end(&flow);
        let source = source.unwrap().rtts;
        assert_eq!((source.samples, source.min, source.max), (100, 1_000_000, 100_000_000));
        assert_eq!(source.mean, 50_500_000);
        for (rtt, exact) in [(source.p50, 50_000_000_u64), (source.p90, 90_000_000), (source.p99, 99_000_000)]
        {
            assert!(rtt.abs_diff(exact) as f64 / (exact as f64) < 0.0445, "{rtt} for {exact}");
        }
        let destination = destination.unwrap().rtts;
        assert_eq!((destination.samples, destination.p50, destination.p99), (1, 7, 7));
        assert_eq!(flows.end(&flow), [None, None]);
        assert_eq!(flows.directions.len(), 1);
    }

    #[test]
    fn dns_samples_take_no_room() {
        let mut flows = FlowSamples::with_room_for(10);
        flows.sample(&RttEvent { method: Method::Dns as u8, ..sample(endpoints(1), 5, 7) }, None);
        assert_eq!((flows.directions.len(), flows.end(&endpoints(1))), (0, [None, None]));
    }

    #[test]
    fn flows_without_an_end_event_are_discarded_after_a_while() {
        let mut flows = FlowSamples::with_room_for(1);
        for port in 1..=3 {
            flows.sample(&sample(endpoints(port), SECOND, 5), None);
        }
        assert_eq!((flows.directions.len(), flows.refused), (2, 1));
        flows.sample(&sample(endpoints(4), SECOND + LIFETIME, 5), None);
        assert_eq!((flows.directions.len(), flows.refused), (1, 1));
    }
}
