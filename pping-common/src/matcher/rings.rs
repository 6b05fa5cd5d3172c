//! The rings of [`crate::rings`].

use std::{array, mem, vec::Vec};

use crate::rings::{AHEAD, RINGS};

/// The rings of an address family.
pub(super) struct Rings<K> {
    rings: [Ring<K>; RINGS as usize],
}

/// A ring: what has its places, and the number of the next newcomer.
struct Ring<K> {
    taken: Vec<K>,
    next: u32,
}

/// What became of places when something new entered a ring. Places are numbered through all rings.
pub(super) struct Entered<K> {
    /// The place of what is new.
    pub(super) place: u32,
    /// What had this place before and has another one now.
    pub(super) moved: Option<(K, u32)>,
    /// What had this place before and has none any more, although it is still a newcomer.
    pub(super) evicted: Option<K>,
}

impl<K> Default for Rings<K> {
    fn default() -> Self {
        Self { rings: array::from_fn(|_| Ring { taken: Vec::new(), next: 0 }) }
    }
}

impl<K: Copy> Rings<K> {
    /// Puts something new into a ring with this many places. `is_newcomer` says whether what has a place still is one.
    pub(super) fn enter(
        &mut self,
        number: u32,
        places: u32,
        new: K,
        is_newcomer: impl Fn(&K, u32) -> bool,
    ) -> Entered<K> {
        let ring = &mut self.rings[number as usize];
        let first = number * places;
        let (place, old) = ring.put(places, new);
        let mut entered = Entered { place: first + place, moved: None, evicted: None };
        let Some(old) = old.filter(|old| is_newcomer(old, entered.place)) else { return entered };
        let ahead = (0..AHEAD).map(|ahead| (ahead, ring.next.wrapping_add(ahead) % places));
        let free = ahead.take_while(|&(_, next)| next != place).find(|&(_, next)| {
            ring.taken.get(next as usize).is_none_or(|other| !is_newcomer(other, first + next))
        });
        match free {
            Some((ahead, _)) => {
                ring.next = ring.next.wrapping_add(ahead);
                let (place, _) = ring.put(places, old);
                entered.moved = Some((old, first + place));
            }
            None => entered.evicted = Some(old),
        }
        entered
    }
}

impl<K> Ring<K> {
    /// Puts something into the next place. Returns that place, and what had it.
    fn put(&mut self, places: u32, new: K) -> (u32, Option<K>) {
        let place = self.next % places;
        self.next = self.next.wrapping_add(1);
        if let Some(old) = self.taken.get_mut(place as usize) {
            return (place, Some(mem::replace(old, new)));
        }
        self.taken.push(new);
        (place, None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_of_a_ring_full_of_newcomers_goes() {
        let mut rings = Rings::default();
        let entered: Vec<_> = (0..6).map(|number| rings.enter(2, 4, number, |_, _| true)).collect();
        let places: Vec<_> = entered.iter().map(|it| (it.place, it.moved, it.evicted)).collect();
        let first = [8, 9, 10, 11].map(|place| (place, None, None));
        assert_eq!(places[..4], first);
        assert_eq!(places[4..], [(8, None, Some(0)), (9, None, Some(1))]);
        assert_eq!(rings.enter(3, 4, 9, |_, _| true).place, 12, "each ring is its own");
    }

    #[test]
    fn the_oldest_takes_the_next_place_if_that_is_free() {
        let mut rings = Rings::default();
        for number in 0..4 {
            rings.enter(0, 4, number, |_, _| true);
        }
        let entered = rings.enter(0, 4, 4, |&number, _| number != 1);
        assert_eq!((entered.place, entered.moved, entered.evicted), (0, Some((0, 1)), None));
        let entered = rings.enter(0, 4, 5, |_, _| true);
        assert_eq!((entered.place, entered.moved, entered.evicted), (2, None, Some(2)), "0 is younger now");
        let entered = rings.enter(0, 4, 6, |&number, _| number != 3);
        assert_eq!((entered.place, entered.moved, entered.evicted), (3, None, None));
        let entered = rings.enter(0, 4, 7, |&number, _| number != 6);
        assert_eq!(
            (entered.place, entered.moved, entered.evicted),
            (0, Some((4, 3)), None),
            "the first that is free"
        );
    }

    #[test]
    fn the_only_place_is_that_of_the_newest() {
        let mut rings = Rings::default();
        rings.enter(0, 1, 1, |_, _| false);
        let entered = rings.enter(0, 1, 2, |&number, _| number == 1);
        assert_eq!((entered.place, entered.moved, entered.evicted), (0, None, Some(1)));
    }
}
