//! Reading events off the ring buffer.

use std::sync::Arc;

use aya::maps::{MapData, RingBuf};
use pping_common::abi::{EndEvent, EventKind, FlowEvent, RttEvent};

use super::{clock::WallClock, load::Kernel};
pub use crate::event::Event;
use crate::{aggregate::Answers, groups::Names, records::Record};

/// Events taken in one go before somebody else gets a turn.
const BATCH: usize = 65_536;

/// Reads an event as the kernel wrote it; `None` for one of a kind or length unknown here.
fn decode(bytes: &[u8]) -> Option<Event> {
    match EventKind::from_number(*bytes.first()?)? {
        EventKind::Rtt if bytes.len() >= size_of::<RttEvent>() => {
            // SAFETY: long enough, and every pattern of its integers is a valid value.
            Some(Event::Rtt(unsafe { bytes.as_ptr().cast::<RttEvent>().read_unaligned() }))
        }
        EventKind::Flow if bytes.len() >= size_of::<FlowEvent>() => {
            // SAFETY: as above.
            Some(Event::Flow(unsafe { bytes.as_ptr().cast::<FlowEvent>().read_unaligned() }))
        }
        EventKind::End if bytes.len() >= size_of::<EndEvent>() => {
            // SAFETY: as above.
            Some(Event::End(unsafe { bytes.as_ptr().cast::<EndEvent>().read_unaligned() }))
        }
        EventKind::Rtt | EventKind::Flow | EventKind::End => None,
    }
}

/// Hands over the events that wait, up to [`BATCH`] of them; the answer is whether that was all.
pub fn drain(ring: &mut RingBuf<MapData>, mut take: impl FnMut(Event)) -> bool {
    for _ in 0..BATCH {
        match ring.next() {
            Some(item) => {
                if let Some(event) = decode(&item) {
                    take(event);
                }
            }
            None => return true,
        }
    }
    false
}

/// Gives the events that wait to `answers`, by the names of what they number, and hands over the records that are to be
/// written of them. Like [`drain`] it takes no more than [`BATCH`], and answers whether that was all.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_too_short_or_unknown_is_no_event() {
        assert!(decode(&[]).is_none());
        assert!(decode(&[0; 200]).is_none());
        assert!(decode(&[9; 200]).is_none());
        let mut rtt = [0; size_of::<RttEvent>()];
        rtt[0] = EventKind::Rtt as u8;
        assert!(matches!(decode(&rtt), Some(Event::Rtt(_))));
        assert!(decode(&rtt[..rtt.len() - 1]).is_none());
    }
}
