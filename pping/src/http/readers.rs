//! The clients that read each page of metrics. A page is large and lives while a client reads it. The number of pages
//! is limited, since slow clients could otherwise keep one of each second alive.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, PoisonError, Weak},
};

use tokio::sync::Notify;

use crate::metrics::Page;

/// The highest number of pages that clients read at a time: one of each format and encoding.
const MAX_PAGES: usize = 6;

/// A client. It is notified if it was too slow and must disconnect.
#[derive(Clone, Debug)]
pub(super) struct Reader(pub(super) Arc<Notify>);

/// The pages, oldest first, with their readers.
#[derive(Debug, Default)]
pub(super) struct Readers(Mutex<VecDeque<(Weak<Page>, Vec<Reader>)>>);

impl Readers {
    /// Adds a reader of `page`. If there are too many pages, the readers of the oldest are notified.
    pub(super) fn add(&self, page: &Arc<Page>, reader: Reader) {
        let mut pages = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        pages.retain(|(page, _)| page.strong_count() > 0);
        let weak = Arc::downgrade(page);
        match pages.iter_mut().find(|(page, _)| page.ptr_eq(&weak)) {
            Some((_, readers)) => readers.push(reader),
            None => pages.push_back((weak, vec![reader])),
        }
        while pages.len() > MAX_PAGES
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
    use crate::metrics::{Encoding, Metrics, PageFormat};

    #[test]
    fn too_many_readers_end_those_of_the_oldest_page() {
        let readers = Readers::default();
        let add = |page: &Arc<Page>| {
            let reader = Reader(Arc::default());
            readers.add(page, reader.clone());
            reader
        };
        let is_notified = |reader: &Reader| reader.0.notified().now_or_never().is_some();
        let metrics = Metrics::new(1, Duration::from_secs(1));
        let another = || {
            metrics.add(&[], Instant::now());
            metrics.page(PageFormat::Classic, Encoding::Identity)
        };
        let pages: Vec<Arc<Page>> = (0..=MAX_PAGES).map(|_| another()).collect();
        let first: Vec<Reader> = [&pages[0], &pages[0]].map(add).into();
        let others: Vec<Reader> = pages[1..MAX_PAGES].iter().map(add).collect();
        assert!(!first.iter().any(is_notified));
        add(&pages[MAX_PAGES]);
        assert!(first.iter().all(is_notified));
        assert!(!others.iter().any(is_notified));
        // Pages that have been read make room by themselves.
        drop(pages);
        add(&another());
        assert!(!others.iter().any(is_notified));
    }
}
