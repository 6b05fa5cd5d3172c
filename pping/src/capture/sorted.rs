//! Puts the packets of several interfaces into the order of time.
//!
//! A program that captures several interfaces writes what it has of one, then what it has of the next, and so on: dumpcap by up
//! to a second. While each interface counts by itself that does not matter. If they are joined, an answer may come before
//! its question, and another packet would be taken for the answer.

use std::{
    cmp::{Ordering, Reverse},
    collections::BinaryHeap,
};

use pping_common::{bytes::Captured, matcher::Packet, parse::LinkType};

use super::error::Error;

/// The id of the interface that all are joined to.
const JOINED: u16 = 0;

/// How long a packet waits for earlier ones, ns in the time of the packets.
const WINDOW: u64 = 3_000_000_000;

/// The bytes that may wait.
const ROOM: usize = 64 << 20;

/// A packet that waits.
#[derive(Debug)]
struct Waiting {
    time: u64,
    /// Packets with the same time stay in their order.
    sequence: u64,
    link: LinkType,
    frame_len: usize,
    bytes: Vec<u8>,
}

/// Packets that wait for earlier ones.
#[derive(Debug, Default)]
pub(super) struct Sorter {
    waiting: BinaryHeap<Reverse<Waiting>>,
    newest: u64,
    sequence: u64,
    bytes: usize,
    /// Whether no more packets will come.
    is_complete: bool,
    /// Why, if the capture is invalid from here on.
    fault: Option<Error>,
    /// The packet that was returned last.
    present: Option<Waiting>,
}

impl Sorter {
    /// Adds a packet.
    pub(super) fn add(&mut self, packet: &Packet<'_>) {
        self.sequence += 1;
        self.newest = self.newest.max(packet.time);
        let Captured { bytes, frame_len } = packet.bytes;
        let (time, sequence, link) = (packet.time, self.sequence, packet.link);
        let packet = Waiting { time, sequence, link, frame_len, bytes: bytes.to_vec() };
        self.bytes += size(&packet);
        self.waiting.push(Reverse(packet));
    }

    /// Whether more packets have to be read before the next one is known.
    pub(super) fn needs_more(&self) -> bool {
        let is_due = |Reverse(first): &Reverse<Waiting>| {
            self.newest.saturating_sub(first.time) > WINDOW || self.bytes > ROOM
        };
        !self.is_complete && !self.waiting.peek().is_some_and(is_due)
    }

    /// Returns the next packet, of the one interface that all are joined to; `None` if an earlier one may still come, or if there is
    /// none. In which direction it passed one of the interfaces says nothing.
    ///
    /// # Errors
    /// The error that ended the capture, after the last packet.
    pub(super) fn next(&mut self) -> Result<Option<Packet<'_>>, Error> {
        if self.needs_more() {
            return Ok(None);
        }
        let Some(Reverse(first)) = self.waiting.pop() else { return self.fault.take().map_or(Ok(None), Err) };
        self.bytes -= size(&first);
        let Waiting { time, link, frame_len, bytes, .. } = self.present.insert(first);
        let bytes = Captured { bytes, frame_len: *frame_len };
        Ok(Some(Packet { time: *time, interface: JOINED, link: *link, direction: None, bytes }))
    }

    /// Ends the capture, by an error if there is one. Returns whether packets still wait.
    pub(super) fn end(&mut self, fault: Option<Error>) -> bool {
        self.is_complete = true;
        self.fault = fault.or(self.fault.take());
        !self.waiting.is_empty()
    }
}

fn size(packet: &Waiting) -> usize {
    size_of::<Waiting>() + packet.bytes.len()
}

impl Ord for Waiting {
    fn cmp(&self, other: &Self) -> Ordering {
        (self.time, self.sequence).cmp(&(other.time, other.sequence))
    }
}

impl PartialOrd for Waiting {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Waiting {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Waiting {}

#[cfg(test)]
mod tests {
    use pping_common::parse::Direction;

    use super::*;

    fn packet(time: u64, bytes: &[u8]) -> Packet<'_> {
        let bytes = Captured { bytes, frame_len: bytes.len() };
        Packet { time, interface: 3, link: LinkType::Ethernet, direction: Some(Direction::Egress), bytes }
    }

    fn sorted(times: &[u64]) -> Vec<u64> {
        let mut sorter = Sorter::default();
        let mut found = Vec::new();
        for &time in times {
            sorter.add(&packet(time, &[]));
            while let Some(packet) = sorter.next().unwrap() {
                found.push(packet.time);
            }
        }
        sorter.end(Some(Error::Truncated));
        while let Ok(Some(packet)) = sorter.next() {
            found.push(packet.time);
        }
        assert!(matches!(sorter.next(), Ok(None)), "the error comes once");
        found
    }

    #[test]
    fn packets_that_come_late_are_put_in_their_place() {
        const S: u64 = 1_000_000_000;
        assert_eq!(sorted(&[5, 6, 3, 4, 9]), [3, 4, 5, 6, 9]);
        assert_eq!(sorted(&[S, 2 * S, 5 * S, 3 * S, 4 * S, 6 * S]), [1, 2, 3, 4, 5, 6].map(|time| time * S));
        // Beyond the window, and if the clock is set back, packets pass as they come.
        assert_eq!(sorted(&[10 * S, 14 * S, 1, 2, 14 * S]), [10 * S, 1, 2, 14 * S, 14 * S]);
        assert_eq!(sorted(&[]), [0; 0]);
    }

    #[test]
    fn what_waits_takes_bounded_memory() {
        let (mut sorter, large) = (Sorter::default(), vec![0; 1 << 20]);
        for time in 0..200 {
            sorter.add(&packet(time, &large));
            while sorter.next().unwrap().is_some() {}
        }
        assert!(sorter.waiting.len() <= 64, "{}", sorter.waiting.len());
    }
}
