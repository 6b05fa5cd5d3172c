//! What is told to whoever drives the flows.

use super::{packet::PacketMetadata, queries::Others};
use crate::{
    flow::{Counted, Endpoint, Flow, FlowKey, Outcome},
    parse::{Address, Frame, Segment},
    rtt::Sample,
};

/// What a DNS message was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DnsMessage {
    /// A query, and what became of others because of it.
    Query(Others),
    /// A query to an address of this host, which is not timed.
    QueryToThisHost,
    /// A response to a query that had waited too long.
    Late,
    /// A response in time.
    Response {
        /// Its response code (RFC 1035, 4.1.1).
        rcode: u8,
        /// Its sample, unless the query was repeated.
        sample: Option<Sample>,
    },
}

/// Is told what becomes of packets and flows. Each method does nothing unless it says otherwise.
pub trait Observer {
    /// Whether what this packet would begin is not measured.
    fn is_excluded(&self, _frame: &Frame) -> bool {
        false
    }

    /// A flow began.
    fn began<A: Address>(&mut self) {}

    /// A flow that was not proved gave way to a newer one.
    fn evicted<A: Address>(&mut self) {}

    /// A packet was counted for its flow.
    #[inline]
    fn counted(&mut self, _counted: Counted, _metadata: PacketMetadata) {}

    /// A flow has sent enough that its traffic is to be taken, before the numbers wrap around. Takes it and drops it.
    fn flush<A: Address>(&mut self, key: &FlowKey<A>, flow: &mut Flow) {
        flow.flush(key.protocol == Segment::NUMBER);
    }

    /// A packet that `from` sent may have matched, recorded, opened or closed.
    fn stepped<A: Address>(
        &mut self,
        outcome: &Outcome,
        flow: (&mut Flow, Endpoint),
        frame: &Frame,
        metadata: PacketMetadata,
    );

    /// A DNS message came.
    fn dns<A: Address>(&mut self, message: DnsMessage, frame: &Frame, metadata: PacketMetadata);

    /// A flow is removed because it has been idle too long. Its newest packet came at `newest`, ns.
    fn expired<A: Address>(&mut self, _key: &FlowKey<A>, _flow: &mut Flow, _newest: u64, _now: u64) {}

    /// A flow is removed because there are no more packets.
    fn still_open<A: Address>(&mut self, _key: &FlowKey<A>, _flow: &mut Flow, _newest: u64) {}
}
