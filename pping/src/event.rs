//! What happens to flows, as the kernel programs and the replay of a capture report it.

use pping_common::abi::{EndEvent, Endpoints, FlowEvent, RttEvent};

/// An event.
#[derive(Clone, Copy, Debug)]
pub enum Event {
    /// A sample.
    Rtt(RttEvent),
    /// A flow direction opened or closed.
    Flow(FlowEvent),
    /// A flow is over, and forgotten.
    End(EndEvent),
}

impl Event {
    /// The flow it is of.
    pub fn endpoints(&self) -> &Endpoints {
        match self {
            Self::Rtt(event) => &event.endpoints,
            Self::Flow(event) => &event.endpoints,
            Self::End(event) => &event.endpoints,
        }
    }
}
