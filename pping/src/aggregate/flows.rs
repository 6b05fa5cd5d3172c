//! The samples of each flow, for its summary.

use std::collections::HashMap;

use foldhash::fast::RandomState;
use pping_common::{
    abi::{Endpoints, RttEvent},
    hist,
    limits::{IDLE_SECONDS, SECOND},
    rtt::Method,
};

use crate::records::Rtts;

/// How long after its last sample a flow direction may be taken to be over, ns, should nothing have said so: that would
/// have been lost.
const FORGOTTEN: u64 = 4 * IDLE_SECONDS as u64 * SECOND;

/// A flow direction by its ends.
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

/// The samples of flow directions that are not over.
#[derive(Default)]
pub(super) struct Flows {
    directions: HashMap<Key, Samples, RandomState>,
    /// How many may be kept.
    capacity: usize,
    /// Before this time, looking for directions that were forgotten is of no use.
    look_at: u64,
    /// Samples that there was no room for.
    refused: u64,
}

/// The samples of a flow direction. Of most bins there are none, so only the others are kept.
#[derive(Default)]
struct Samples {
    count: u64,
    sum: u128,
    min: u64,
    max: u64,
    last: u64,
    /// In the order of the bins.
    bins: Vec<(u8, u32)>,
}

impl Flows {
    /// With room for the directions of so many flows.
    pub(super) fn with_room_for(flows: usize) -> Self {
        Self { capacity: flows.saturating_mul(2), ..Self::default() }
    }

    /// Takes a sample. DNS has none for summaries: there is no flow, and so nothing would ever end it.
    pub(super) fn sample(&mut self, event: &RttEvent) {
        if event.method == Method::Dns as u8 {
            return;
        }
        let key = Key::from(&event.endpoints);
        if self.directions.len() >= self.capacity && !self.directions.contains_key(&key) {
            self.make_room(event.timestamp);
            if self.directions.len() >= self.capacity {
                if self.refused == 0 {
                    tracing::warn!(
                        "samples are missing from summaries of flows: there are more than --max-flows"
                    );
                }
                self.refused += 1;
                return;
            }
        }
        self.directions.entry(key).or_default().take(event.rtt, event.timestamp);
    }

    /// Ends a flow: its samples with `endpoints` as they are, and exchanged.
    pub(super) fn end(&mut self, endpoints: &Endpoints) -> [Option<Rtts>; 2] {
        [*endpoints, endpoints.reversed()]
            .map(|endpoints| self.directions.remove(&Key::from(&endpoints)).map(|samples| samples.rtts()))
    }

    fn make_room(&mut self, now: u64) {
        if now < self.look_at {
            return;
        }
        self.look_at = now.saturating_add(SECOND);
        self.directions.retain(|_, samples| now.saturating_sub(samples.last) < FORGOTTEN);
    }
}

impl Samples {
    fn take(&mut self, rtt: u64, at: u64) {
        self.min = if self.count == 0 { rtt } else { self.min.min(rtt) };
        self.max = self.max.max(rtt);
        self.count += 1;
        self.sum += u128::from(rtt);
        self.last = at;
        // There are fewer than 256 bins.
        let bin = hist::bin(rtt) as u8;
        match self.bins.binary_search_by_key(&bin, |&(bin, _)| bin) {
            Ok(index) => self.bins[index].1 = self.bins[index].1.saturating_add(1),
            Err(index) => self.bins.insert(index, (bin, 1)),
        }
    }

    fn rtts(&self) -> Rtts {
        let quantile = |part: f64| {
            let rank = (part * self.count as f64).ceil() as u64;
            let mut sum = 0;
            let bin = self.bins.iter().find(|&&(_, count)| {
                sum += u64::from(count);
                sum >= rank
            });
            bin.map_or(self.max, |&(bin, _)| hist::middle(usize::from(bin)).clamp(self.min, self.max))
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
        let mut flows = Flows::with_room_for(10);
        let flow = endpoints(1);
        for ms in 1..=100 {
            flows.sample(&sample(flow, ms, ms * 1_000_000));
        }
        flows.sample(&sample(flow.reversed(), 5, 7));
        flows.sample(&sample(endpoints(2), 5, 8));
        let [source, destination] = flows.end(&flow);
        let source = source.unwrap();
        assert_eq!((source.samples, source.min, source.max), (100, 1_000_000, 100_000_000));
        assert_eq!(source.mean, 50_500_000);
        for (rtt, exact) in [(source.p50, 50_000_000_u64), (source.p90, 90_000_000), (source.p99, 99_000_000)]
        {
            assert!(rtt.abs_diff(exact) as f64 / (exact as f64) < 0.063, "{rtt} for {exact}");
        }
        let destination = destination.unwrap();
        assert_eq!((destination.samples, destination.p50, destination.p99), (1, 7, 7));
        assert_eq!(flows.end(&flow), [None, None]);
        assert_eq!(flows.directions.len(), 1);
    }

    #[test]
    fn what_is_no_flow_takes_no_room() {
        let mut flows = Flows::with_room_for(10);
        flows.sample(&RttEvent { method: Method::Dns as u8, ..sample(endpoints(1), 5, 7) });
        assert_eq!((flows.directions.len(), flows.end(&endpoints(1))), (0, [None, None]));
    }

    #[test]
    fn flows_of_which_no_end_was_heard_make_room_in_the_end() {
        let mut flows = Flows::with_room_for(1);
        for port in 1..=3 {
            flows.sample(&sample(endpoints(port), SECOND, 5));
        }
        assert_eq!((flows.directions.len(), flows.refused), (2, 1));
        flows.sample(&sample(endpoints(4), SECOND + FORGOTTEN, 5));
        assert_eq!((flows.directions.len(), flows.refused), (1, 1));
    }
}
