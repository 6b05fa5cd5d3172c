//! Records of the events in the kernel's ring.

use std::sync::Arc;

use super::Agent;
use crate::{
    Error,
    aggregate::Answers,
    event::Event,
    groups::Names,
    kernel::{clock::WallClock, drain::drain, load::Kernel},
    output::Batch,
    records::Record,
};

/// Aggregates the events in the ring and passes their records to `take`. Like [`drain`], it stops after a batch, and
/// returns true if the ring is empty now.
pub fn records(
    kernel: &mut Kernel,
    answers: &mut Answers,
    names: &mut Names,
    clock: WallClock,
    mut take: impl FnMut(&Record),
) -> bool {
    let Kernel { events, series, interface_ids, .. } = kernel;
    drain(events, |event| {
        let Some(name) = interface_ids.name(event.endpoints().interface) else { return };
        let group = match &event {
            Event::Rtt(sample) => {
                series.key(sample.series).and_then(|key| names.group(&key.group).of_sample())
            }
            _ => None,
        };
        if let Some(record) = answers.event(&event, Some(Arc::clone(name)), group, |time| clock.epoch(time)) {
            take(&record);
        }
    })
}

impl Agent {
    /// Writes the records of the events in the ring.
    pub(super) fn drain(&mut self) -> Result<(), Error> {
        let clock = WallClock::now()?;
        let Self { kernel, sink, aggregator, .. } = self;
        let mut batch = Batch::default();
        let (answers, names) = (&mut aggregator.answers, &mut aggregator.names);
        records(kernel, answers, names, clock, |record| batch.push(sink.as_mut(), record));
        self.output.write(batch);
        Ok(())
    }
}
