//! The binary interface between the kernel programs and the agent: settings, counters, events.
//!
//! The kernel programs write only valid numbers, but the agent reads them as plain integers and looks up their names. So
//! no value is undefined behaviour.

mod control;
mod counters;
mod events;
mod interface;
mod maps;
mod persistent;
mod report;
mod residence;
mod selector;
mod stage;
mod sweep;
mod timed;
mod worst;

pub use control::Control;
pub use counters::{Counters, Lost, PacketCounters};
pub use events::{
    Emit, EndEvent, Endpoints, EventKind, FlowEvent, FlowEventKind, RttEvent, TriggeredBy, Volume,
};
pub use interface::{Interface, InterfaceName, InterfaceRoom, Later};
pub use maps::{LAYOUT, PINNED_MAPS, PinnedMap, layout_for};
pub use persistent::{BUCKETS, LABEL_BYTES, PersistentEntry, PersistentKey, PersistentTotals};
pub use report::{FlowReporter, FlowState};
pub use residence::{Followed, Offsets, Part, Passing, Residence, ResidenceOwner};
pub use selector::SeriesSelector;
pub use stage::Stage;
pub use sweep::SweepRequest;
pub use timed::{PacketProgram, Timed};
pub use worst::{Candidate, Figure, MILLION, Threshold};

/// Marks types that the agent may read from and write to maps and globals byte by byte.
#[cfg(feature = "aya")]
mod pod {
    use super::{
        Control, Counters, Emit, EndEvent, FlowEvent, Interface, InterfaceName, Offsets, PersistentEntry,
        Residence, RttEvent,
    };
    use crate::{
        dns::{PendingQuery, QueryKey},
        flow::FlowKey,
        group::{GroupKey, Grouping, LabelKey},
        hash::TableKeys,
        parse::{Decap, Ipv4, Ipv6, Scope},
        rtt::Rules,
        table::Table,
    };

    macro_rules! pod {
        ($($type:ty),+ $(,)?) => {
            $(
                // SAFETY: `Copy`, and `repr(C)` or transparent, without padding. The types that are read back have integers only,
                // of which every bit pattern is valid; `Rules` and `Scope` are written from here and never read back.
                unsafe impl aya::Pod for $type {}
            )+
        };
    }

    pod!(Control, Counters, Decap, Emit, GroupKey, Grouping, Interface, InterfaceName, LabelKey);
    pod!(EndEvent, FlowEvent, RttEvent);
    pod!(PersistentEntry, Offsets, PendingQuery, Residence, Rules, Scope, Table, TableKeys);
    pod!(FlowKey<Ipv4>, FlowKey<Ipv6>, QueryKey<Ipv4>, QueryKey<Ipv6>);
}
