//! Interfaces that count as one, as in `eth1+eth2`.

use std::sync::Arc;

use super::{Attached, Interfaces};
use crate::{
    kernel::{
        self,
        counters::Watched,
        interfaces::{self, Link},
        loaded::Kernel,
        selection::check_link_types,
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
        self.without_id.retain(|name| selected.contains(name));
        for name in selected {
            let id = match interfaces::register_joined(kernel, &name) {
                Ok(id) => id,
                Err(error @ kernel::Error::TooManyInterfaces { .. }) if !self.watched.is_empty() => {
                    // Others are measured already, and go on.
                    if self.without_id.insert(Arc::clone(&name)) {
                        tracing::error!("{error}; until there is, these interfaces count apart");
                    }
                    continue;
                }
                Err(error) => return Err(error),
            };
            self.without_id.remove(&name);
            self.watched.retain(|it| it.id != id);
            self.watched.push(Watched { name, id, attach_points: None, is_up: true, place: Place::Joined });
        }
        Ok(())
    }

    /// Joins attached interfaces, or counts them apart, as the selection now says.
    pub(super) fn join(&mut self, kernel: &mut Kernel) -> Result<(), kernel::Error> {
        self.register_joined(kernel)?;
        for Attached { link, joined, .. } in self.attached.values_mut() {
            let now = self.selection.joined(link).filter(|name| !self.without_id.contains(*name));
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
            check_link_types(joined, &other.link, link)?;
        }
        Ok(())
    }
}
