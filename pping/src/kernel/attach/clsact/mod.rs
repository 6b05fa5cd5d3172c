//! tc by filters on a clsact qdisc, for kernels without TCX.
//!
//! A filter stays when its process ends. So its name contains the run that made it. A later run can then remove the
//! filters of a killed one, and leave those of a running one alone.

pub mod leftovers;
mod lock;
mod name;
pub(super) mod run;

use std::{
    collections::BTreeSet,
    io,
    os::fd::{AsFd as _, BorrowedFd},
    sync::Arc,
};

use aya::programs::SchedClassifier;
use nix::net::if_::if_nametoindex;
use pping_common::parse::Direction;

use self::{
    lock::FilterLock,
    name::Name,
    run::{FilterOwner, RunSocket},
};
use crate::kernel::{
    error::innermost,
    interfaces::Link,
    traffic_control::{FIRST_OF_KERNEL, TrafficControl, is_gone},
};

/// A filter of this run. Dropping it removes it, and the qdisc too, if pping made that and no other filter uses it.
pub(super) struct Filter {
    pub(super) place: FilterPlace,
    _socket: Arc<RunSocket>,
}

/// Where a filter is, and its name.
#[derive(Clone, Debug)]
pub struct FilterPlace {
    interface: String,
    ifindex: u32,
    name: Name,
}

impl Filter {
    /// Attaches a program at one direction of an interface. `has_qdisc` says that pping made the qdisc that is there.
    ///
    /// # Errors
    /// The error of the kernel.
    pub(super) fn attach(
        program: &SchedClassifier,
        link: &Link,
        direction: Direction,
        owner: &mut FilterOwner,
        has_qdisc: bool,
    ) -> io::Result<Self> {
        let socket = owner.socket()?;
        let name = Name { direction, run: socket.run, has_qdisc };
        let name = add_with_qdisc(program, link, name)?;
        let place = FilterPlace { interface: link.name.clone(), ifindex: link.ifindex, name };
        Ok(Self { place, _socket: socket })
    }

    /// Attaches the program again if another program removed the filter.
    ///
    /// # Errors
    /// The error of the kernel.
    pub(super) fn put_back(&mut self, program: &SchedClassifier, link: &Link) -> io::Result<()> {
        if self.place.is_lost()? {
            // The qdisc that pping made, if it did, may be gone as well, and that of another program be there.
            let name = Name { has_qdisc: false, ..self.place.name };
            self.place.name = add_with_qdisc(program, link, name)?;
        }
        Ok(())
    }
}

/// Returns the numbers of the interfaces from which other programs removed one of these filters.
pub fn lost(filters: &[FilterPlace]) -> BTreeSet<u32> {
    let is_lost = |it: &&FilterPlace| {
        it.is_lost().unwrap_or_else(|error| {
            tracing::warn!("{}: cannot look for a filter of pping: {error}", it.interface);
            false
        })
    };
    filters.iter().filter(is_lost).map(|it| it.ifindex).collect()
}

impl FilterPlace {
    /// Whether another program removed the filter, and not the interface with it.
    ///
    /// # Errors
    /// The error of the kernel.
    fn is_lost(&self) -> io::Result<bool> {
        let name = self.name.to_string();
        let filters = TrafficControl::connect()?.filters(self.ifindex, self.name.direction)?;
        // The kernel takes an interface from its list before it removes the filters.
        let is_same_interface = || if_nametoindex(&*self.interface) == Ok(self.ifindex);
        Ok(filters.iter().all(|filter| filter.name != name) && is_same_interface())
    }

    fn remove(&self) -> io::Result<()> {
        let mut control = TrafficControl::connect()?;
        let _lock = FilterLock::acquire();
        let (name, direction) = (self.name.to_string(), self.name.direction);
        let filters = control.filters(self.ifindex, direction)?;
        // If the filter is gone, the qdisc is a new one, made by another program.
        let Some(filter) = filters.iter().find(|filter| filter.name == name) else { return Ok(()) };
        match control.remove_filter(self.ifindex, direction, filter) {
            Err(error) if is_gone(&error) => return Ok(()),
            result => result?,
        }
        if self.name.has_qdisc {
            remove_unused_qdisc(&mut control, self.ifindex)?;
        }
        Ok(())
    }
}

impl Drop for Filter {
    fn drop(&mut self) {
        if let Err(error) = self.place.remove() {
            let interface = &self.place.interface;
            tracing::warn!("{interface}: could not remove a tc filter ({error}); run `pping cleanup`");
        }
    }
}

/// Adds a filter, and a qdisc if there is none. Returns the filter's name, which also says if pping made the
/// qdisc.
fn add_with_qdisc(program: &SchedClassifier, link: &Link, mut name: Name) -> io::Result<Name> {
    let program = program.fd().map_err(|error| io::Error::other(innermost(&error)))?;
    let mut control = TrafficControl::connect()?;
    let _lock = FilterLock::acquire();
    let is_made = control.add_clsact(link.ifindex)?;
    name.has_qdisc |= is_made;
    let added = add(&mut control, program.as_fd(), link, name);
    if added.is_err() && is_made {
        remove_unused_qdisc(&mut control, link.ifindex).ok();
    }
    added
}

fn add(
    control: &mut TrafficControl,
    program: BorrowedFd<'_>,
    link: &Link,
    mut name: Name,
) -> io::Result<Name> {
    let direction = name.direction;
    let mut names = Vec::new();
    let mut is_first = true;
    for it in Direction::ALL {
        for filter in control.filters(link.ifindex, it)? {
            is_first &= it != direction || filter.priority() >= FIRST_OF_KERNEL;
            names.extend(Name::parse(&filter.name));
        }
    }
    name.has_qdisc |= names.iter().any(|other| other.has_qdisc);
    control.add_filter(link.ifindex, direction, program, &name.to_string())?;
    if !is_first {
        tracing::info!(
            "{}: other filters run first at {}; pping does not see packets that they accept or drop",
            link.name,
            direction.name()
        );
    }
    Ok(name)
}

/// Removes the qdisc of an interface if it has no filters. Returns whether it did.
fn remove_unused_qdisc(control: &mut TrafficControl, ifindex: u32) -> io::Result<bool> {
    for direction in Direction::ALL {
        if !control.filters(ifindex, direction)?.is_empty() {
            return Ok(false);
        }
    }
    match control.remove_clsact(ifindex) {
        Err(error) if is_gone(&error) => Ok(false),
        removed => removed.map(|()| true),
    }
}
