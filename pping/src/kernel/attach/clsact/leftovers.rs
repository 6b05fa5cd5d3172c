//! Leftovers of runs that were killed.

use std::{collections::BTreeSet, fmt, io};

use pping_common::parse::Direction;

use super::{lock::FilterLock, name::Name, run::Run};
use crate::kernel::traffic_control::{TrafficControl, is_gone};

/// The leftovers removed from an interface.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Removed {
    filters: usize,
    runs: BTreeSet<Run>,
    qdisc: Qdisc,
}

/// The clsact qdisc of the filters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Qdisc {
    /// No filter says that pping made it.
    #[default]
    Others,
    /// pping made it, and other filters still use it.
    Stays,
    /// pping made it, and it was removed.
    Removed,
}

impl Removed {
    /// Whether there was nothing to remove.
    pub fn is_empty(&self) -> bool {
        self.filters == 0
    }

    /// Whether a qdisc that pping made is still there.
    pub(in crate::kernel::attach) fn leaves_qdisc(&self) -> bool {
        self.qdisc == Qdisc::Stays
    }
}

impl fmt::Display for Removed {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let plural = |count: usize| if count == 1 { "" } else { "s" };
        let (filters, runs) = (self.filters, self.runs.len());
        write!(formatter, "{filters} filter{} of {runs} run{}", plural(filters), plural(runs))?;
        formatter.write_str(match self.qdisc {
            Qdisc::Others => "",
            Qdisc::Stays => "; the clsact qdisc stays, since others use it",
            Qdisc::Removed => ", and the clsact qdisc",
        })
    }
}

/// Removes the filters of runs that are not alive any more. If one of them made the qdisc and no other filter uses
/// it, removes that, too.
///
/// # Errors
/// The error of the kernel. A missing interface is no error.
pub fn remove(ifindex: u32) -> io::Result<Removed> {
    let mut removed = Removed::default();
    let mut control = TrafficControl::connect()?;
    let mut has_qdisc = false;
    let _lock = FilterLock::acquire();
    for direction in Direction::ALL {
        for filter in control.filters(ifindex, direction)? {
            let Some(name) = Name::parse(&filter.name).filter(|name| !name.run.is_alive()) else { continue };
            match control.remove_filter(ifindex, direction, &filter) {
                Err(error) if is_gone(&error) => continue,
                result => result?,
            }
            removed.filters += 1;
            removed.runs.insert(name.run);
            has_qdisc |= name.has_qdisc;
        }
    }
    if has_qdisc {
        let is_removed = super::remove_unused_qdisc(&mut control, ifindex)?;
        removed.qdisc = if is_removed { Qdisc::Removed } else { Qdisc::Stays };
    }
    Ok(removed)
}
