//! The samples of a packet.

use core::{array, iter::FusedIterator};
use std::net::{IpAddr, SocketAddr};

use super::{
    observer::{DnsMessage, Observer},
    packet::PacketMetadata,
};
use crate::{
    flow::{Endpoint, Flow, Outcome},
    parse::{Address, Family, Frame, IpAddress, Untracked},
    rtt::Sample,
};

/// A round-trip time between the place of the measurement and a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RttSample {
    /// The host at the end of the round trip: it sent the packet that gave the sample. An echo has its identifier as port.
    pub source: SocketAddr,
    /// The other host, whose earlier packet was answered.
    pub destination: SocketAddr,
    /// The method, the identifier that was echoed, and the round-trip time.
    pub sample: Sample,
}

/// The samples of a packet, which are at most two: one by timestamps, one by sequence numbers.
#[derive(Clone, Debug)]
pub struct Samples {
    found: array::IntoIter<Option<RttSample>, 2>,
    untracked: Option<Untracked>,
}

impl Samples {
    /// Why the packet is not measured, if it is not. A packet that is measured need not give a sample.
    pub fn untracked(&self) -> Option<Untracked> {
        self.untracked
    }
}

impl Iterator for Samples {
    type Item = RttSample;

    fn next(&mut self) -> Option<RttSample> {
        self.found.by_ref().flatten().next()
    }
}

impl FusedIterator for Samples {}

/// Keeps the samples of a packet.
#[derive(Default)]
pub(super) struct Collected([Option<RttSample>; 2]);

impl Collected {
    pub(super) fn into_samples(self, untracked: Option<Untracked>) -> Samples {
        Samples { found: self.0.into_iter(), untracked }
    }

    #[inline]
    fn set(&mut self, samples: [Option<Sample>; 2], frame: &Frame) {
        if samples != [None; 2] {
            let (source, destination) = endpoints(frame);
            self.0 = samples.map(|it| it.map(|sample| RttSample { source, destination, sample }));
        }
    }
}

impl Observer for Collected {
    #[inline]
    fn stepped<A: Address>(
        &mut self,
        outcome: &Outcome,
        _flow: (&mut Flow, Endpoint),
        frame: &Frame,
        _metadata: PacketMetadata,
    ) {
        self.set([outcome.measured.sample(), outcome.second.sample()], frame);
    }

    fn dns<A: Address>(&mut self, message: DnsMessage, frame: &Frame, _metadata: PacketMetadata) {
        if let DnsMessage::Response { sample, .. } = message {
            self.set([sample, None], frame);
        }
    }
}

/// The source and the destination of a frame.
fn endpoints(frame: &Frame) -> (SocketAddr, SocketAddr) {
    let address = |address: IpAddress| {
        let bytes = address.to_bytes();
        match (frame.family, bytes) {
            (Family::V4, [.., a, b, c, d]) => IpAddr::from([a, b, c, d]),
            (Family::V6, _) => IpAddr::from(bytes),
        }
    };
    let (source, destination) = frame.transport.ports();
    let ends = [(frame.source, source), (frame.destination, destination)];
    let [source, destination] = ends.map(|(end, port)| SocketAddr::new(address(end), port));
    (source, destination)
}
