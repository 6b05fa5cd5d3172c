//! Times in this host: what `--residence` needs of the kernel, and what its programs measured.

use std::{fs, os::unix::fs::MetadataExt as _};

use aya::{
    Ebpf,
    maps::{Array, MapData},
    programs::RawTracePoint,
};
use pping_common::abi::{InterfaceRoom, Offsets, Part, Residence};

use super::{
    object::{program_mut, refused},
    signals::retry_interrupted,
    types::Types,
};
use crate::{kernel::Error, residence::Times};

/// A tracepoint that queueing times need.
#[derive(Clone, Copy, Debug)]
pub struct Tracepoint {
    /// Its name.
    pub name: &'static str,
    /// The first kernel that has it.
    pub since: &'static str,
    program: &'static str,
}

/// The tracepoints, in the order in which programs are attached: the ends first, so that no end of a followed packet is
/// missed.
pub const TRACEPOINTS: [Tracepoint; 3] = [
    Tracepoint { name: "kfree_skb", since: "Linux 2.6.30", program: "pping_freed" },
    Tracepoint { name: "qdisc_dequeue", since: "Linux 4.14", program: "pping_dequeued" },
    Tracepoint { name: "qdisc_enqueue", since: "Linux 5.15", program: "pping_enqueued" },
];

/// What to do on a kernel without them.
const FORWARDING_ONLY: &str = "without queues (--residence-every 0) it works here";

/// Finds the kernel's fields that the programs read.
///
/// # Errors
/// [`Error::Residence`] if the kernel lacks something; it says what, and which kernel has it.
pub fn offsets() -> Result<Offsets, Error> {
    let types = Types::read().map_err(|error| {
        let reason = format!(
            "timing queues needs this kernel's type information (CONFIG_DEBUG_INFO_BTF): {error}; \
             {FORWARDING_ONLY}"
        );
        Error::Residence { reason }
    })?;
    if let Some(Tracepoint { name, since, .. }) = TRACEPOINTS.iter().find(|it| !types.has_tracepoint(it.name))
    {
        let release = rustix::system::uname().release().to_string_lossy().into_owned();
        let reason = format!(
            "timing queues needs the tracepoint {name} ({since}), and this is Linux {release}; \
             {FORWARDING_ONLY}"
        );
        return Err(Error::Residence { reason });
    }
    let offset = |structure: &str, field: &str| {
        types.offset(structure, field).ok_or_else(|| {
            let reason = format!("this kernel has no {structure}.{field}, which all known kernels have");
            Error::Residence { reason }
        })
    };
    Ok(Offsets {
        skb_next: offset("sk_buff", "next")?,
        skb_head: offset("sk_buff", "head")?,
        skb_network_header: offset("sk_buff", "network_header")?,
        queue_dev: offset("netdev_queue", "dev")?,
        dev_ifindex: offset("net_device", "ifindex")?,
        dev_mtu: offset("net_device", "mtu")?,
        dev_net: offset("net_device", "nd_net")?,
        net_inum: offset("net", "ns")? + offset("ns_common", "inum")?,
        // The kernel's numbers of namespaces have 32 bits.
        namespace: fs::metadata("/proc/thread-self/ns/net")?.ino() as u32,
    })
}

/// Loads the programs that follow packets through queues, and attaches them until the agent ends.
///
/// # Errors
/// If the kernel does not accept them.
pub(super) fn attach(programs: &mut Ebpf) -> Result<(), Error> {
    for Tracepoint { name, program, .. } in TRACEPOINTS {
        let tracepoint: &mut RawTracePoint = program_mut(programs, program)?;
        retry_interrupted(|| tracepoint.load()).map_err(|error| refused(program, error))?;
        tracepoint.attach(name).map_err(|error| refused(program, error))?;
    }
    Ok(())
}

/// Returns the number of entries of the map of times.
pub(super) fn entries(room: InterfaceRoom) -> u32 {
    Part::ALL.len() as u32 * room.ids
}

/// The times that the programs measured.
pub struct ResidenceMap {
    map: Array<MapData, Residence>,
    every: u32,
}

impl ResidenceMap {
    /// Wraps the map of programs that follow one packet in `every` through its queue, or none if that is 0.
    pub(super) fn new(map: Array<MapData, Residence>, every: u32) -> Self {
        Self { map, every }
    }

    /// Whether packets are followed through queues.
    pub(super) fn has_queues(&self) -> bool {
        self.every != 0
    }

    /// Reads the times of an interface so far.
    ///
    /// # Errors
    /// If the kernel does not read them.
    pub fn times(&self, interface_id: u16) -> Result<Times, Error> {
        let read = |part| self.read(part, interface_id);
        Ok(Times::new(read(Part::Forwarding)?, read(Part::Queue)?, self.every))
    }

    /// Reads the times of a part and an interface so far.
    ///
    /// # Errors
    /// If the kernel does not read them.
    pub fn read(&self, part: Part, interface_id: u16) -> Result<Residence, Error> {
        Ok(self.map.get(&part.index(interface_id), 0)?)
    }

    /// Resets the times of an interface.
    ///
    /// # Errors
    /// If the kernel does not write them.
    pub fn clear(&mut self, interface_id: u16) -> Result<(), Error> {
        for part in Part::ALL {
            self.map.set(part.index(interface_id), Residence::ZERO, 0)?;
        }
        Ok(())
    }
}
