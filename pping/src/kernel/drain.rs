//! Reading events off the ring buffer.

use aya::{
    Pod,
    maps::{MapData, RingBuf},
};
use pping_common::abi::EventKind;

pub use crate::event::Event;

/// The most events taken at a time, so that a full ring does not hold up the rest of the agent.
const BATCH: usize = 65_536;

/// Decodes an event. `None` if its kind or length is unknown.
fn decode(bytes: &[u8]) -> Option<Event> {
    Some(match EventKind::from_number(*bytes.first()?)? {
        EventKind::Rtt => Event::Rtt(read(bytes)?),
        EventKind::Flow => Event::Flow(read(bytes)?),
        EventKind::End => Event::End(read(bytes)?),
    })
}

/// Returns the value at the beginning of `bytes`; `None` if there are too few.
fn read<T: Pod>(bytes: &[u8]) -> Option<T> {
    // SAFETY: there are enough bytes, and any are a valid value.
    (bytes.len() >= size_of::<T>()).then(|| unsafe { bytes.as_ptr().cast::<T>().read_unaligned() })
}

/// Passes the events in the ring to `take`, at most [`BATCH`] of them. Returns true if the ring is empty now.
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

#[cfg(test)]
mod tests {
    use pping_common::abi::RttEvent;

    use super::*;

    #[test]
    fn short_or_unknown_events_are_ignored() {
        assert!(decode(&[]).is_none());
        assert!(decode(&[0; 200]).is_none());
        assert!(decode(&[9; 200]).is_none());
        let mut rtt = [0; size_of::<RttEvent>()];
        rtt[0] = EventKind::Rtt as u8;
        assert!(matches!(decode(&rtt), Some(Event::Rtt(_))));
        assert!(decode(&rtt[..rtt.len() - 1]).is_none());
    }
}
