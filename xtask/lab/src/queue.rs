//! Frames on their way through a wire, in the order in which they leave it.

use std::{
    cmp::Reverse,
    collections::BinaryHeap,
    time::{Duration, Instant},
};

/// The most frames that a wire may hold, like the queue of a real device: at 1,500 bytes a frame about 100 MB.
const CAPACITY: usize = 65_536;

/// Frames sorted by the time they are due; those due at the same time leave in the order of their arrival.
#[derive(Debug, Default)]
pub(crate) struct Queue {
    held: BinaryHeap<Reverse<Held>>,
    arrivals: u64,
}

#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Held {
    due: Instant,
    arrival: u64,
    frame: Vec<u8>,
}

impl Queue {
    /// Adds a frame, or hands it back when the queue is full.
    pub(crate) fn push(&mut self, due: Instant, frame: Vec<u8>) -> Result<(), Vec<u8>> {
        if self.held.len() >= CAPACITY {
            return Err(frame);
        }
        self.arrivals += 1;
        self.held.push(Reverse(Held { due, arrival: self.arrivals, frame }));
        Ok(())
    }

    /// The next frame that is due by now.
    pub(crate) fn pop_due(&mut self, now: Instant) -> Option<Vec<u8>> {
        if self.held.peek()?.0.due > now {
            return None;
        }
        self.held.pop().map(|Reverse(held)| held.frame)
    }

    /// The time until the next frame is due, zero if it is late.
    pub(crate) fn wait(&self, now: Instant) -> Option<Duration> {
        self.held.peek().map(|next| next.0.due.saturating_duration_since(now))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_with_the_same_hold_keep_their_order() {
        let mut queue = Queue::default();
        let due = Instant::now();
        for byte in 0..100 {
            queue.push(due, vec![100 - byte]).unwrap();
        }
        let order: Vec<_> = std::iter::from_fn(|| queue.pop_due(due)).flatten().collect();
        assert_eq!(order, (1..=100).rev().collect::<Vec<_>>());
    }

    #[test]
    fn a_frame_held_less_overtakes() {
        let mut queue = Queue::default();
        let now = Instant::now();
        queue.push(now + Duration::from_millis(20), vec![1]).unwrap();
        queue.push(now + Duration::from_millis(10), vec![2]).unwrap();
        assert_eq!(queue.pop_due(now), None);
        assert_eq!(queue.wait(now), Some(Duration::from_millis(10)));
        let later = now + Duration::from_millis(20);
        assert_eq!(queue.pop_due(later), Some(vec![2]));
        assert_eq!(queue.pop_due(later), Some(vec![1]));
    }

    #[test]
    fn a_full_queue_hands_the_frame_back() {
        let mut queue = Queue::default();
        let now = Instant::now();
        for _ in 0..CAPACITY {
            queue.push(now, Vec::new()).unwrap();
        }
        assert_eq!(queue.push(now, vec![7]), Err(vec![7]));
    }
}
