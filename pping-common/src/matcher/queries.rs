//! Pending requests: DNS queries, and in a replay echo requests.

use std::{
    collections::{HashMap, VecDeque},
    hash::Hash,
};

use foldhash::fast::RandomState;

use super::rings::{Entered, Rings};
use crate::{
    dns::{Query, is_unanswered},
    limits::{MAX_QUERIES, SECOND},
};

/// The time that a packet may be behind the newest one before the clock counts as set back, ns.
const SETBACK: u64 = 60 * SECOND;

/// A request that has waited for less than this when the capture ends may have had its reply after that, ns.
const UNDECIDED: u64 = SECOND;

/// The clock of pending queries, ns: the time from the first packet to the newest. After a packet that is more than a minute older
/// than the newest, counting goes on from that packet's time. A gap of more than a minute counts as one: nothing waits longer, and a
/// capture that jumps by decades cannot bring the clock to its end.
#[derive(Clone, Copy, Debug, Default)]
pub struct Elapsed {
    newest: Option<u64>,
    elapsed: u64,
}

impl Elapsed {
    /// Takes the time of a packet.
    #[inline]
    pub fn advance(&mut self, time: u64) {
        let newest = self.newest.unwrap_or(time);
        if time >= newest {
            self.elapsed = self.elapsed.saturating_add((time - newest).min(SETBACK));
        }
        if time >= newest || newest - time > SETBACK {
            self.newest = Some(time);
        }
    }
}

/// A pending query.
struct PendingQuery {
    query: Query,
    /// When it was last sent, by [`Elapsed`], ns.
    asked: u64,
    /// Its number in the order in which queries were sent.
    number: u64,
    /// Its place in the rings.
    place: u32,
}

/// What became of other queries when one was sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Others {
    /// Those that turned out to be unanswered.
    pub unanswered: u64,
    /// Those whose place was taken while they were pending.
    pub given_up: u64,
}

/// The queries of an address family, by what their response has in common with them. The hash has its own seed, so no
/// capture can be made to collide.
pub struct Queries<K> {
    pending: HashMap<K, PendingQuery, RandomState>,
    /// Queries in the order in which they were sent, the oldest first. Queries that are no longer pending may still be in it.
    asked: VecDeque<(u64, K)>,
    numbers: u64,
    rings: Rings<K>,
}

impl<K> Default for Queries<K> {
    fn default() -> Self {
        Self { pending: HashMap::default(), asked: VecDeque::new(), numbers: 0, rings: Rings::default() }
    }
}

impl<K: Copy + Eq + Hash> Queries<K> {
    /// Adds a query from a packet at `now`, ns. If the same query is pending already, it is void from now on: its response gives no
    /// RTT, unless this is a copy of it. Otherwise it takes a place in `ring`, the number of a ring and its places.
    pub fn insert(
        &mut self,
        key: K,
        ring: (u32, u32),
        (now, copy_within): (u64, u64),
        elapsed: Elapsed,
    ) -> Others {
        let elapsed = elapsed.elapsed;
        let mut outcome = Others::default();
        if let Some(pending) = self.pending.get(&key)
            && !is_unanswered(pending.asked, elapsed)
            && pending.query.is_copied(now, copy_within)
        {
            return outcome;
        }
        let known = self.pending.get(&key).filter(|pending| !is_unanswered(pending.asked, elapsed));
        let (place, query) = if let Some(pending) = known {
            (pending.place, Query::repeated(now))
        } else {
            outcome.unanswered = u64::from(self.pending.remove(&key).is_some());
            let (place, given_up) = self.take_place(key, ring);
            outcome.given_up = u64::from(given_up);
            (place, Query::sent(now))
        };
        self.numbers += 1;
        self.pending.insert(key, PendingQuery { query, asked: elapsed, number: self.numbers, place });
        self.asked.push_back((self.numbers, key));
        if self.asked.len() > 2 * MAX_QUERIES as usize {
            let pending = &self.pending;
            self.asked.retain(|(number, key)| pending.get(key).is_some_and(|it| it.number == *number));
        }
        outcome
    }

    /// Takes a place in a ring. Returns that, and whether the query that had it is given up.
    fn take_place(&mut self, key: K, (ring, places): (u32, u32)) -> (u32, bool) {
        // What has a place may have been answered, and asked again since: then it has another place.
        let is_pending =
            |other: &K, place| self.pending.get(other).is_some_and(|pending| pending.place == place);
        let Entered { place, moved, evicted } = self.rings.enter(ring, places, key, is_pending);
        if let Some((old, place)) = moved
            && let Some(pending) = self.pending.get_mut(&old)
        {
            pending.place = place;
        }
        (place, evicted.is_some_and(|old| self.pending.remove(&old).is_some()))
    }

    /// The number of pending queries.
    pub fn pending(&self) -> usize {
        self.pending.len()
    }

    /// Whether a query is pending.
    pub fn has(&self, key: &K) -> bool {
        self.pending.contains_key(key)
    }

    /// Removes the query that a response answers. Returns it, and whether it has waited too long.
    pub fn take(&mut self, key: &K, elapsed: Elapsed) -> Option<(Query, bool)> {
        let pending = self.pending.remove(key)?;
        Some((pending.query, is_unanswered(pending.asked, elapsed.elapsed)))
    }

    /// Removes the queries that have waited too long, and returns their number.
    pub fn expire(&mut self, elapsed: Elapsed) -> u64 {
        let mut unanswered = 0;
        while let Some((number, key)) = self.asked.front() {
            if let Some(pending) = self.pending.get(key).filter(|pending| pending.number == *number) {
                if !is_unanswered(pending.asked, elapsed.elapsed) {
                    break;
                }
                self.pending.remove(key);
                unanswered += 1;
            }
            self.asked.pop_front();
        }
        unanswered
    }

    /// The numbers of queries without a response at the end of the capture: of those that have waited, and of those that
    /// may have had one after the end.
    pub fn left(&self, elapsed: Elapsed) -> (u64, u64) {
        let has_waited = |it: &&PendingQuery| elapsed.elapsed.saturating_sub(it.asked) >= UNDECIDED;
        let unanswered = self.pending.values().filter(has_waited).count();
        (unanswered as u64, (self.pending.len() - unanswered) as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        arm::Arm,
        dns::QueryKey,
        limits::{COPY_WITHIN, DNS_TIMEOUT_SECONDS},
        parse::Ipv4,
    };

    const TIMEOUT: u64 = DNS_TIMEOUT_SECONDS * SECOND;

    fn key(number: u32) -> QueryKey<Ipv4> {
        let [server_port, client_port] = [53, (number >> 16) as u16];
        let (client, server) = (Ipv4::ZERO, Ipv4::ZERO);
        QueryKey { client, server, client_port, server_port, id: number as u16, arm: Arm::FIRST }
    }

    fn at(elapsed: u64) -> Elapsed {
        Elapsed { newest: None, elapsed }
    }

    #[test]
    fn time_goes_on_from_where_a_clock_was_set_back_to() {
        let mut clock = Elapsed::default();
        let mut after = |time| {
            clock.advance(time);
            clock.elapsed
        };
        assert_eq!(after(100 * SECOND), 0);
        assert_eq!(after(103 * SECOND), 3 * SECOND);
        assert_eq!(after(102 * SECOND), 3 * SECOND, "a little disorder changes nothing");
        assert_eq!(after(104 * SECOND), 4 * SECOND);
        assert_eq!(after(44 * SECOND), 4 * SECOND, "a minute is not more than a minute");
        assert_eq!(after(105 * SECOND), 5 * SECOND);
        assert_eq!(after(45 * SECOND - 1), 5 * SECOND);
        assert_eq!(after(45 * SECOND), 5 * SECOND + 1);
        assert_eq!(after(u64::MAX), 5 * SECOND + 1 + SETBACK);
    }

    #[test]
    fn a_clock_that_jumps_by_decades_goes_on() {
        const DECADES: u64 = 50 * 365 * 86_400 * SECOND;
        let mut clock = Elapsed::default();
        for _ in 0..1000 {
            clock.advance(0);
            clock.advance(DECADES);
        }
        let before = clock.elapsed;
        clock.advance(DECADES + TIMEOUT);
        assert!(is_unanswered(before, clock.elapsed));
    }

    #[test]
    fn what_was_just_asked_is_not_left_unanswered() {
        let mut queries = Queries::default();
        for number in 0..3 {
            queries.insert(key(number), RING, (0, COPY_WITHIN), at(u64::from(number) * SECOND));
        }
        assert_eq!(
            [SECOND, 2 * SECOND, 3 * SECOND].map(|elapsed| queries.left(at(elapsed))),
            [(1, 2), (2, 1), (3, 0)]
        );
    }

    /// Places in a ring.
    const PLACES: u32 = 4096;

    /// The ring of all queries, unless a test says otherwise.
    const RING: (u32, u32) = (3, PLACES);

    const NONE: Others = Others { unanswered: 0, given_up: 0 };
    const ONE_UNANSWERED: Others = Others { unanswered: 1, given_up: 0 };
    const ONE_GIVEN_UP: Others = Others { unanswered: 0, given_up: 1 };

    #[test]
    fn the_oldest_of_a_ring_makes_room_and_is_counted() {
        let mut queries = Queries::default();
        queries.insert(key(1 << 30), (2, PLACES), (1, COPY_WITHIN), at(0));
        for number in 0..PLACES {
            assert_eq!(queries.insert(key(number), RING, (1, COPY_WITHIN), at(u64::from(number))), NONE);
        }
        assert_eq!(queries.insert(key(0), RING, (2, COPY_WITHIN), at(50_000)), NONE, "it keeps its place");
        queries.take(&key(10), at(50_000)).unwrap();
        queries.take(&key(11), at(50_000)).unwrap();
        assert_eq!(
            queries.insert(key(100_000), RING, (3, COPY_WITHIN), at(60_000)),
            ONE_GIVEN_UP,
            "that was 0"
        );
        assert_eq!(queries.insert(key(11), RING, (3, COPY_WITHIN), at(60_000)), ONE_GIVEN_UP, "that was 1");
        for number in 2..6 {
            assert_eq!(
                queries.insert(key(200_000 + number), RING, (3, COPY_WITHIN), at(60_000)),
                ONE_GIVEN_UP,
                "{number}"
            );
        }
        assert_eq!(
            queries.insert(key(100_001), RING, (3, COPY_WITHIN), at(60_000)),
            NONE,
            "6 takes the place of 10"
        );
        assert_eq!(
            queries.insert(key(100_002), RING, (3, COPY_WITHIN), at(60_000)),
            NONE,
            "11 has another place than before"
        );
        let left = [(0, false), (1, false), (5, false), (6, true), (10, false), (11, true), (1 << 30, true)];
        for (number, is_there) in left {
            assert_eq!(queries.pending.contains_key(&key(number)), is_there, "{number}");
        }
    }

    #[test]
    fn query_memory_is_bounded() {
        let mut queries = Queries::default();
        queries.insert(key(1 << 31), (2, PLACES), (0, COPY_WITHIN), at(0));
        for number in 0..5 * MAX_QUERIES {
            queries.insert(key(number), RING, (1, COPY_WITHIN), at(1));
            queries.take(&key(number), at(1)).unwrap();
        }
        assert_eq!(queries.pending.len(), 1);
        assert!(queries.asked.len() <= 2 * MAX_QUERIES as usize);
        assert_eq!(queries.expire(at(TIMEOUT)), 1);
        assert!(queries.asked.is_empty() && queries.pending.is_empty());
    }

    #[test]
    fn each_query_is_given_up_once() {
        let mut queries = Queries::default();
        for number in 0..4 {
            assert_eq!(queries.insert(key(number), RING, (0, COPY_WITHIN), at(u64::from(number))), NONE);
        }
        assert_eq!(queries.expire(at(TIMEOUT - 1)), 0);
        assert_eq!(
            queries.insert(key(0), RING, (0, COPY_WITHIN), at(TIMEOUT)),
            ONE_UNANSWERED,
            "it is pending again"
        );
        assert_eq!(
            queries.insert(key(2), RING, (COPY_WITHIN, COPY_WITHIN), at(TIMEOUT + 1)),
            NONE,
            "it is void, and waits from then"
        );
        assert!(queries.take(&key(1), at(TIMEOUT + 1)).unwrap().1, "answered too late");
        assert_eq!(queries.expire(at(TIMEOUT + 5)), 1);
        assert_eq!(queries.expire(at(2 * TIMEOUT + 1)), 2);
    }
}
