//! Records of the events in the kernel's ring.

use std::sync::Arc;

use super::state::Agent;
use crate::{
    Error,
    event::Event,
    groups::Names,
    kernel::{clock::WallClock, drain::drain, loaded::Kernel},
    membership::Membership,
    output::Batch,
    records::{Record, Reporter},
};

/// Aggregates the events in the ring and passes their records to `take`. Like [`drain`], it stops after a batch, and
/// returns true if the ring is empty now.
pub fn records(
    kernel: &mut Kernel,
    reporter: &mut Reporter,
    names: &mut Names,
    clock: WallClock,
    mut take: impl FnMut(&Record),
) -> bool {
    let Kernel { events, series, interface_ids, .. } = kernel;
    drain(events, |event| {
        let Some(name) = interface_ids.name(event.endpoints().interface) else { return };
        let of = match &event {
            Event::Rtt(sample) => names.membership(series.key(sample.series).as_ref()),
            _ => Membership::default(),
        };
        if let Some(record) = reporter.event(&event, Some(Arc::clone(name)), of, |time| clock.epoch(time)) {
            take(&record);
        }
    })
}

impl Agent {
    /// Writes the records of the events in the ring.
    pub(super) fn drain(&mut self) -> Result<(), Error> {
        let clock = WallClock::now()?;
        let Self { kernel, reporter, names, encoder, .. } = self;
        let mut batch = Batch::default();
        records(kernel, reporter, names, clock, |record| encoder.append(record, &mut batch));
        self.output.write(batch);
        Ok(())
    }
}
