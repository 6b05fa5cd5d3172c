//! Events of flows, from the kernel programs or the replay of a capture.

use pping_common::abi::{EndEvent, Endpoints, FlowEvent, RttEvent};

/// An event of a flow.
#[derive(Clone, Copy, Debug)]
pub enum Event {
    /// A sample.
    Rtt(RttEvent),
    /// A flow direction opened or closed.
    Flow(FlowEvent),
    /// A flow ended and was removed.
    End(EndEvent),
}

impl Event {
    /// The endpoints of the flow.
    pub fn endpoints(&self) -> &Endpoints {
        match self {
            Self::Rtt(event) => &event.endpoints,
            Self::Flow(event) => &event.endpoints,
            Self::End(event) => &event.endpoints,
        }
    }
}
