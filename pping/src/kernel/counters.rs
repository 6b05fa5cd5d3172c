//! The counters of the kernel programs.

use std::sync::Arc;

use pping_common::abi::Counters;

use super::{attach::AttachPoints, load::Kernel};
use crate::{
    kernel::Error,
    snapshot::{InterfaceCounters, Snapshot},
};

/// An interface that is being watched, or was until it went away.
#[derive(Clone, Debug)]
pub struct Watched {
    /// Its name.
    pub name: Arc<str>,
    /// Its interface id.
    pub id: u16,
    /// The attach points, present or last.
    pub attach_points: AttachPoints,
    /// Whether it exists at present.
    pub is_up: bool,
}

/// Reads the counters of the watched interfaces.
///
/// # Errors
/// When the map cannot be read.
pub fn read(kernel: &Kernel, watched: &[Watched]) -> Result<Snapshot, Error> {
    let read = |watched: &Watched| {
        let mut counters = Counters::ZERO;
        for cpu in kernel.counters.get(&u32::from(watched.id), 0)?.iter() {
            counters.add(cpu);
        }
        let AttachPoints { ingress, egress } = watched.attach_points;
        let mut attach_points = vec![ingress.name(), egress.name()];
        attach_points.dedup();
        Ok(InterfaceCounters {
            name: Arc::clone(&watched.name),
            attach_points,
            is_up: watched.is_up,
            counters,
        })
    };
    let interfaces = watched.iter().map(read).collect::<Result<_, Error>>()?;
    Ok(Snapshot { interfaces })
}
