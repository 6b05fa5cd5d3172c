//! Reading events off the ring buffer.

use aya::maps::{MapData, RingBuf};
use pping_common::abi::{EndEvent, EventKind, FlowEvent, RttEvent};

pub use crate::event::Event;

/// Events taken in one go before somebody else gets a turn.
const BATCH: usize = 65_536;

/// Reads an event as the kernel wrote it; `None` for one of a kind or length unknown here.
fn decode(octets: &[u8]) -> Option<Event> {
    match EventKind::from_number(*octets.first()?)? {
        EventKind::Rtt if octets.len() >= size_of::<RttEvent>() => {
            // SAFETY: long enough, and every pattern of its integers is a valid value.
            Some(Event::Rtt(unsafe { octets.as_ptr().cast::<RttEvent>().read_unaligned() }))
        }
        EventKind::Flow if octets.len() >= size_of::<FlowEvent>() => {
            // SAFETY: as above.
            Some(Event::Flow(unsafe { octets.as_ptr().cast::<FlowEvent>().read_unaligned() }))
        }
        EventKind::End if octets.len() >= size_of::<EndEvent>() => {
            // SAFETY: as above.
            Some(Event::End(unsafe { octets.as_ptr().cast::<EndEvent>().read_unaligned() }))
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
