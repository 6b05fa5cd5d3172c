//! The binary interface between the kernel programs and the agent: settings, counters, events.
//!
//! Fields only ever hold what the kernel programs put there, but the agent reads them as plain numbers
//! and turns them into names by lookup, so that no value is undefined behaviour.

mod counters;
mod events;
mod interface;
mod series;

pub use counters::{Counters, Hook, Lost};
pub use events::{
    Emit, EndEvent, Endpoints, EventKind, FlowEvent, FlowEventKind, RttEvent, TriggeredBy, Volume,
};
pub use interface::{Interface, place};
pub use series::{Control, Purpose, Series, SeriesKey, SeriesRef, Tally, Traffic};

/// Marks what the agent may read from, and write to, maps and globals octet by octet.
#[cfg(feature = "aya")]
mod pod {
    use super::{Control, Counters, Emit, Interface, SeriesKey};
    use crate::{
        group::{GroupKey, Grouping, LabelKey},
        parse::Decap,
        rtt::Rules,
    };

    // SAFETY: `repr(C)`, `Copy`, no padding, and every bit pattern of its integers is valid.
    unsafe impl aya::Pod for Counters {}
    // SAFETY: as above.
    unsafe impl aya::Pod for Interface {}
    // SAFETY: `repr(C)`, `Copy`, no padding; only ever written from here, never read back.
    unsafe impl aya::Pod for Rules {}
    // SAFETY: a number.
    unsafe impl aya::Pod for Decap {}
    // SAFETY: a number.
    unsafe impl aya::Pod for Emit {}
    // SAFETY: `repr(C)`, `Copy`, no padding, and every bit pattern of its integers is valid.
    unsafe impl aya::Pod for Grouping {}
    // SAFETY: as above.
    unsafe impl aya::Pod for GroupKey {}
    // SAFETY: as above.
    unsafe impl aya::Pod for LabelKey {}
    // SAFETY: as above.
    unsafe impl aya::Pod for SeriesKey {}
    // SAFETY: as above.
    unsafe impl aya::Pod for Control {}
}
