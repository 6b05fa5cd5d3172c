//! Interfaces that count as one, as in `eth1+eth2`.

use std::sync::Arc;

use super::{Attached, Interfaces};
use crate::{
    kernel::{
        self,
        counters::Watched,
        interfaces::{self, Link},
        loaded::Kernel,
    },
    snapshot::Place,
};

impl Interfaces {
    /// Gives each joined interface of the selection its id, and those that are not selected any more up.
    pub(super) fn register_joined(&mut self, kernel: &mut Kernel) -> Result<(), kernel::Error> {
        let selected: Vec<_> = self.selection.all_joined().cloned().collect();
        for watched in self.watched.iter_mut().filter(|it| it.place == Place::Joined && it.is_up) {
            if !selected.contains(&watched.name) {
                watched.is_up = false;
                kernel.interface_ids.disown(watched.id);
            }
        }
        for name in selected {
            let id = interfaces::register_joined(kernel, &name)?;
            self.watched.retain(|it| it.id != id);
            self.watched.push(Watched { name, id, attach_points: None, is_up: true, place: Place::Joined });
        }
        Ok(())
    }

    /// Joins attached interfaces, or counts them apart, as the selection now says.
    pub(super) fn join(&mut self, kernel: &mut Kernel) -> Result<(), kernel::Error> {
        self.register_joined(kernel)?;
        for Attached { link, joined, .. } in self.attached.values_mut() {
            let now = self.selection.joined(link);
            if now == joined.as_ref() {
                continue;
            }
            *joined = now.cloned();
            let id = link.register_as(kernel, now.and_then(|name| kernel.interface_ids.of(name)))?;
            for watched in self.watched.iter_mut().filter(|it| it.id == id) {
                watched.place = joined.clone().map_or(Place::Alone, Place::OneOf);
            }
        }
        Ok(())
    }

    /// Checks that an interface has the link type of those that it is joined with.
    pub(super) fn check_link_type(&self, link: &Link, joined: &Arc<str>) -> Result<(), kernel::Error> {
        let others = self.attached.values().filter(|it| it.joined.as_ref() == Some(joined));
        for other in others {
            if other.link.link_type()? != link.link_type()? {
                return Err(kernel::Error::JoinedLinkTypes {
                    name: joined.to_string(),
                    one: other.link.name.clone(),
                    other: link.name.clone(),
                });
            }
        }
        Ok(())
    }
}
