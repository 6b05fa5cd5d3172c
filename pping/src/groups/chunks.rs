//! A sorted set that is cheap to copy and to change.
//!
//! Items are in chunks of a few hundred. A copy shares all chunks, and a change copies the one chunk that it is in. So a reader
//! gets its own unchanging copy of a million items in no time, while another thread goes on changing them.

use std::{fmt::Debug, sync::Arc};

/// The highest number of items in a chunk.
const MAX: usize = 256;

/// An item with a key, by which it is found.
pub(super) trait Keyed: Clone + Debug {
    /// The key: no two items of a set have the same.
    type Key: Ord + Copy;

    /// The key of this item.
    fn key(&self) -> Self::Key;
}

/// A set of items in the order of their keys.
#[derive(Clone, Debug)]
pub(super) struct Chunks<T> {
    /// None of them is empty.
    chunks: Arc<Vec<Arc<Vec<T>>>>,
    len: usize,
}

impl<T> Default for Chunks<T> {
    fn default() -> Self {
        Self { chunks: Arc::default(), len: 0 }
    }
}

/// Where an item is, or would be: the chunk, and the item in it.
type Found = (usize, Result<usize, usize>);

impl<T: Keyed> Chunks<T> {
    /// Makes a set of items in any order. Of items with the same key the last stays.
    pub(super) fn new(mut items: Vec<T>) -> Self {
        items.sort_by_key(T::key);
        let mut chunks = Vec::with_capacity(items.len().div_ceil(MAX / 2));
        let (mut chunk, mut len) = (Vec::new(), 0);
        let mut items = items.into_iter().peekable();
        while let Some(item) = items.next() {
            if items.peek().is_some_and(|next| next.key() == item.key()) {
                continue;
            }
            len += 1;
            chunk.push(item);
            // Half full: there is room for more without splitting.
            if chunk.len() == MAX / 2 {
                chunks.push(Arc::new(std::mem::take(&mut chunk)));
            }
        }
        if !chunk.is_empty() {
            chunks.push(Arc::new(chunk));
        }
        Self { chunks: Arc::new(chunks), len }
    }

    /// The number of items.
    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// All items in order.
    pub(super) fn iter(&self) -> impl Iterator<Item = &T> + Clone {
        self.chunks.iter().flat_map(|chunk| chunk.iter())
    }

    /// The items from a key on.
    pub(super) fn iter_from<'a>(&'a self, key: &T::Key) -> impl Iterator<Item = &'a T> + Clone + use<'a, T> {
        let (chunk, Ok(within) | Err(within)) = self.find(key);
        let (first, rest) = match self.chunks.get(chunk..) {
            Some([first, rest @ ..]) => (first.get(within..).unwrap_or_default(), rest),
            _ => (&[][..], &[][..]),
        };
        first.iter().chain(rest.iter().flat_map(|chunk| chunk.iter()))
    }

    /// The item with this key.
    pub(super) fn get(&self, key: &T::Key) -> Option<&T> {
        let (chunk, within) = self.find(key);
        self.chunks.get(chunk)?.get(within.ok()?)
    }

    /// Adds an item. Returns the one with the same key that it replaces.
    pub(super) fn insert(&mut self, item: T) -> Option<T> {
        let (index, within) = self.find(&item.key());
        let chunks = Arc::make_mut(&mut self.chunks);
        let Some(chunk) = chunks.get_mut(index).map(Arc::make_mut) else {
            chunks.push(Arc::new(vec![item]));
            self.len += 1;
            return None;
        };
        match within {
            Ok(within) => chunk.get_mut(within).map(|known| std::mem::replace(known, item)),
            Err(within) => {
                chunk.insert(within, item);
                if chunk.len() > MAX {
                    let upper = chunk.split_off(MAX / 2);
                    chunks.insert(index + 1, Arc::new(upper));
                }
                self.len += 1;
                None
            }
        }
    }

    /// Removes an item, and returns it.
    pub(super) fn remove(&mut self, key: &T::Key) -> Option<T> {
        let (index, within) = self.find(key);
        let within = within.ok()?;
        let chunks = Arc::make_mut(&mut self.chunks);
        let chunk = Arc::make_mut(chunks.get_mut(index)?);
        let removed = chunk.remove(within);
        self.len -= 1;
        let len = chunk.len();
        if len == 0 {
            chunks.remove(index);
        } else if len < MAX / 4 && chunks.get(index + 1).is_some_and(|next| next.len() + len <= MAX / 2) {
            let next = chunks.remove(index + 1);
            if let Some(chunk) = chunks.get_mut(index) {
                Arc::make_mut(chunk).extend_from_slice(&next);
            }
        }
        Some(removed)
    }

    fn find(&self, key: &T::Key) -> Found {
        let after = self.chunks.partition_point(|chunk| chunk.first().is_some_and(|it| it.key() <= *key));
        let index = after.saturating_sub(1);
        let within = self.chunks.get(index).map_or(Err(0), |it| it.binary_search_by_key(key, T::key));
        (index, within)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    impl Keyed for (u16, u8) {
        type Key = u16;

        fn key(&self) -> u16 {
            self.0
        }
    }

    proptest! {
        #[test]
        fn it_behaves_like_a_map_and_copies_do_not_change(
            first in prop::collection::vec((0_u16..2_000, any::<u8>()), 0..1_500),
            changes in prop::collection::vec((any::<bool>(), 0_u16..2_000, any::<u8>()), 0..1_500),
        ) {
            let mut map: BTreeMap<u16, u8> = first.iter().copied().collect();
            let mut chunks = Chunks::new(first);
            let (copy, map_before) = (chunks.clone(), map.clone());
            for (is_added, key, value) in changes {
                if is_added {
                    prop_assert_eq!(chunks.insert((key, value)).map(|it| it.1), map.insert(key, value));
                } else {
                    prop_assert_eq!(chunks.remove(&key).map(|it| it.1), map.remove(&key));
                }
            }
            for (chunks, map) in [(&chunks, &map), (&copy, &map_before)] {
                prop_assert_eq!(chunks.len(), map.len());
                prop_assert!(chunks.iter().copied().eq(map.iter().map(|(&key, &value)| (key, value))));
                for key in [0, 1, 999, 1_000, 1_999, 2_000] {
                    prop_assert_eq!(chunks.get(&key).map(|it| it.1), map.get(&key).copied());
                    prop_assert!(chunks.iter_from(&key).map(|it| it.0).eq(map.range(key..).map(|it| *it.0)));
                }
            }
        }
    }
}
