//! Who reads which page. Pages are large, and one lives as long as somebody reads it: there may be a few, not one for
//! each second that a slow client takes.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, PoisonError, Weak},
};

use tokio::sync::Notify;

use crate::metrics::Page;

/// How many pages may be read at once: those of both formats, plain and compressed, and older ones.
const PAGES: usize = 6;

/// A client; notified when it has been too slow.
#[derive(Clone, Debug)]
pub(super) struct Reader(pub(super) Arc<Notify>);

/// Pages, the oldest first, and their readers.
#[derive(Debug, Default)]
pub(super) struct Readers(Mutex<VecDeque<(Weak<Page>, Vec<Reader>)>>);

impl Readers {
    /// Notes that `reader` gets `page`. Those who still read the oldest may have to stop.
    pub(super) fn add(&self, page: &Arc<Page>, reader: Reader) {
        let mut pages = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        pages.retain(|(page, _)| page.strong_count() > 0);
        let weak = Arc::downgrade(page);
        match pages.iter_mut().find(|(page, _)| page.ptr_eq(&weak)) {
            Some((_, readers)) => readers.push(reader),
            None => pages.push_back((weak, vec![reader])),
        }
        while pages.len() > PAGES
            && let Some((_, readers)) = pages.pop_front()
        {
            for reader in readers {
                reader.0.notify_one();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use futures_util::FutureExt as _;

    use super::*;
    use crate::metrics::{Encoding, Metrics, Text};

    #[test]
    fn whoever_reads_the_oldest_of_too_many_pages_is_told() {
        let readers = Readers::default();
        let add = |page: &Arc<Page>| {
            let reader = Reader(Arc::default());
            readers.add(page, reader.clone());
            reader
        };
        let is_told = |reader: &Reader| reader.0.notified().now_or_never().is_some();
        let metrics = Metrics::new(1, Duration::from_secs(1));
        let another = || {
            metrics.add(&[], Instant::now());
            metrics.page(Text::Classic, Encoding::Identity).unwrap()
        };
        let pages: Vec<Arc<Page>> = (0..=PAGES).map(|_| another()).collect();
        let first: Vec<Reader> = [&pages[0], &pages[0]].map(add).into();
        let others: Vec<Reader> = pages[1..PAGES].iter().map(add).collect();
        assert!(!first.iter().any(is_told));
        add(&pages[PAGES]);
        assert!(first.iter().all(is_told));
        assert!(!others.iter().any(is_told));
        // One that was read makes room by itself.
        drop(pages);
        add(&another());
        assert!(!others.iter().any(is_told));
    }
}
