//! Filters that other programs remove, before Linux 6.6 where tc has no links.

use std::{
    collections::BTreeSet,
    thread,
    time::{Duration, Instant},
};

use super::{Attached, Gone, Interfaces};
use crate::{
    capabilities,
    kernel::{self, attach, loaded::Kernel},
};

/// The interval in which filters are looked for, because other programs may remove them.
const FILTER_INTERVAL: Duration = Duration::from_secs(2);

impl Attached {
    fn has_lost_filters(&self) -> bool {
        let filters: Vec<_> = self.attachment.filters().collect();
        !attach::lost(&filters).is_empty()
    }
}

impl Interfaces {
    /// Puts filters back that other programs removed. Packets may have passed unseen, so all flows start over.
    ///
    /// # Errors
    /// If the flows cannot start over.
    pub(in crate::agent) fn put_filters_back(&mut self, kernel: &mut Kernel) -> Result<(), kernel::Error> {
        let mut lost = self.lost_filters();
        // By now an interface may have gone, with its filters.
        lost.retain(|ifindex| self.attached.get(ifindex).is_some_and(Attached::has_lost_filters));
        if lost.is_empty() {
            return Ok(());
        }
        // Otherwise what was recorded before would be matched with what passes from here on.
        kernel.pause()?;
        for ifindex in lost {
            let Some(Attached { link, attachment, .. }) = self.attached.get_mut(&ifindex) else { continue };
            match attachment.put_filters_back(kernel, link) {
                Ok(()) => tracing::warn!(
                    "{}: another program had removed filters of pping, which are back: packets that passed \
                     meanwhile were not measured, and all flows start over",
                    link.name
                ),
                Err(error) => {
                    let reason = format!("another program removed filters of pping, and now: {error}");
                    self.detach(kernel, ifindex, &Gone::ForNow(reason));
                    self.failed.insert(ifindex, Instant::now());
                }
            }
        }
        kernel.start_over()
    }

    /// Returns the interfaces from which another program removed filters, by ifindex, as far as that is known yet.
    fn lost_filters(&mut self) -> BTreeSet<u32> {
        if let Some(look) = self.look.take_if(|look| look.is_finished()) {
            return look.join().unwrap_or_default();
        }
        if self.look.is_none() && self.looked.elapsed() >= FILTER_INTERVAL {
            let filters: Vec<_> = self.attached.values().flat_map(|it| it.attachment.filters()).collect();
            if !filters.is_empty() {
                let look = move || {
                    // Listing filters needs no capability.
                    if let Err(error) = capabilities::drop_all() {
                        tracing::warn!("cannot drop capabilities before listing tc filters: {error}");
                    }
                    attach::lost(&filters)
                };
                self.look = thread::Builder::new().name("pping-filters".into()).spawn(look).ok();
            }
            self.looked = Instant::now();
        }
        BTreeSet::new()
    }
}
