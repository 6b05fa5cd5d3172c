//! Flows: their keys, their state between two packets, and how packets change it.

mod key;
mod memory;
mod packet;
mod state;
#[cfg(test)]
mod tests;

pub use key::{Endpoint, FlowKey};
pub use memory::cold::{
    Cold, Events, Facts, Locked, LockedDirection, PendingNumber, SpinTimes, Totals, flush,
};
pub use memory::direction_state::DirectionState;
pub use memory::hot::{FlowSnapshot, Hot, HotDirection, HotEntry, is_proved};
pub use memory::latest::Latest;
pub use memory::lifecycle::{Changes, Lifecycle, Reason};
pub use memory::locked::{LockedFlow, PendingLookup};
pub use memory::protocol_state::ProtocolState;
pub use memory::traffic::Sent;
pub use packet::count::{Behind, DirectionCounts, count};
pub use packet::step::Outcome;
pub use packet::tcp::has_still_timestamps;
pub use state::{Counted, Flow, is_expired, is_pending_idle, last_known};
