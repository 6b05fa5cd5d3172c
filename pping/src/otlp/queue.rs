//! Requests that the receiver has yet to accept.

use std::collections::VecDeque;

use hyper::body::Bytes;

/// The most bytes that are kept. With 100 groups this is more than an hour.
pub(super) const MAX_BYTES: usize = 16 << 20;

/// Requests, oldest first.
#[derive(Debug, Default)]
pub(super) struct Queue {
    requests: VecDeque<Bytes>,
    bytes: usize,
}

impl Queue {
    /// Adds the newest request. Returns the number of requests that were dropped to make room, oldest first.
    pub(super) fn push(&mut self, request: Bytes) -> u64 {
        self.bytes += request.len();
        self.requests.push_back(request);
        self.trim()
    }

    /// Puts the oldest request back. Returns the number of requests that were dropped.
    pub(super) fn put_back(&mut self, request: Bytes) -> u64 {
        self.bytes += request.len();
        self.requests.push_front(request);
        self.trim()
    }

    /// Takes the oldest request.
    pub(super) fn pop(&mut self) -> Option<Bytes> {
        let request = self.requests.pop_front()?;
        self.bytes -= request.len();
        Some(request)
    }

    /// Returns the number of requests.
    pub(super) fn len(&self) -> usize {
        self.requests.len()
    }

    fn trim(&mut self) -> u64 {
        let mut dropped = 0;
        while self.bytes > MAX_BYTES && self.pop().is_some() {
            dropped += 1;
        }
        dropped
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_requests_are_kept_within_the_limit() {
        let request = |number: u8| Bytes::from(vec![number; MAX_BYTES / 4]);
        let mut queue = Queue::default();
        let dropped: u64 = (0..4).map(|number| queue.push(request(number))).sum();
        assert_eq!((dropped, queue.len()), (0, 4));
        let oldest = queue.pop().unwrap();
        assert_eq!(queue.push(request(4)), 0);
        // The request that was being sent is the oldest, and has no room any more.
        assert_eq!(queue.put_back(oldest), 1);
        let kept: Vec<u8> = std::iter::from_fn(|| queue.pop()).map(|request| request[0]).collect();
        assert_eq!(kept, [1, 2, 3, 4]);
        assert_eq!((queue.bytes, queue.len()), (0, 0));
    }
}
