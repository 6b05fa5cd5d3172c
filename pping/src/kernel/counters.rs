//! The counters of the kernel programs.

use std::sync::Arc;

use pping_common::parse::Direction;

use super::{attach_point::AttachPoints, loaded::Kernel};
use crate::{
    kernel::Error,
    residence::InterfaceTimes,
    snapshot::{InterfaceCounters, Snapshot},
};

/// An interface that is being watched, or was until it went away.
#[derive(Clone, Debug)]
pub struct Watched {
    /// Its name.
    pub name: Arc<str>,
    /// Its interface id.
    pub id: u16,
    /// The current attach points, or the last ones.
    pub attach_points: AttachPoints,
    /// Whether it exists at present.
    pub is_up: bool,
}

/// Reads the counters of the watched interfaces.
pub fn read(kernel: &Kernel, watched: &[Watched]) -> Snapshot {
    let read = |watched: &Watched| {
        let counters = kernel.counters.sum(watched.id);
        let AttachPoints { ingress, egress } = watched.attach_points;
        let mut attach_points = vec![ingress.name(), egress.name()];
        attach_points.dedup();
        InterfaceCounters { name: Arc::clone(&watched.name), attach_points, is_up: watched.is_up, counters }
    };
    Snapshot { interfaces: watched.iter().map(read).collect() }
}

/// Reads the times in this host of each watched interface. Without `--residence` there are none.
///
/// # Errors
/// If the kernel does not read them.
pub fn residence(kernel: &Kernel, watched: &[Watched]) -> Result<Vec<InterfaceTimes>, Error> {
    let Some(residence) = &kernel.residence else { return Ok(Vec::new()) };
    let of = |Watched { name, id, .. }: &Watched| {
        let sent = kernel.counters.sum(*id).packets(Direction::Egress);
        let times = Box::new(residence.times(*id)?);
        Ok(InterfaceTimes { interface: Arc::clone(name), times, sent })
    };
    watched.iter().map(of).collect()
}
