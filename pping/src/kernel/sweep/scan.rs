//! Laps through the flows that sent packets, if there are more of them than one sweep visits.

/// For how many sweeps after its last packet a flow may have something to flush: a packet may be counted late, but by
/// less than a sweep.
const FLUSH_SWEEPS: u32 = 2;

/// The progress of sweeps through the flows that sent packets. Each sweep continues where the previous one stopped.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Scan {
    /// The next bucket to visit.
    pub(super) next: usize,
    /// The sweep that began this scan.
    began: Option<u32>,
    /// The sweep that began the previous scan; `None` in the first scan, when flows of an earlier run may be left.
    previous_began: Option<u32>,
}

impl Scan {
    /// Begins a scan if none is under way. Returns the most sweeps that a flow with something to flush can have been idle:
    /// the previous scan flushed what is older.
    pub(super) fn max_idle(&mut self, sweep: u32) -> u32 {
        self.began.get_or_insert(sweep);
        self.previous_began
            .map_or(u32::MAX, |began| FLUSH_SWEEPS + sweep.wrapping_sub(began).saturating_sub(1))
    }

    /// Notes that all buckets before `next` were visited. The scan ends if those are all buckets.
    pub(super) fn visited(&mut self, next: usize, buckets: usize) {
        *self = if next < buckets {
            Self { next, ..*self }
        } else {
            Self { next: 0, began: None, previous_began: self.began }
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn max_idle_covers_the_previous_scan() {
        let mut scan = Scan::default();
        assert_eq!(scan.max_idle(7), u32::MAX, "whatever was left by a run before this one");
        scan.visited(10, 10);
        for sweep in 8..11 {
            assert_eq!(scan.max_idle(sweep), FLUSH_SWEEPS);
            scan.visited(10, 10);
        }
        // Three sweeps for a scan from now on. The scan before began with sweep 10.
        for (sweep, next) in [(11, 4), (12, 8), (13, 10)] {
            assert_eq!(scan.max_idle(sweep), FLUSH_SWEEPS + sweep - 11);
            scan.visited(next, 10);
        }
        assert_eq!((scan.next, scan.max_idle(14)), (0, FLUSH_SWEEPS + 2));
        scan.visited(4, 10);
        // The first bucket was last visited in sweep 11, the last one in sweep 13.
        assert_eq!((scan.next, scan.max_idle(15)), (4, FLUSH_SWEEPS + 3));
        scan.visited(10, 10);
        assert_eq!(scan.max_idle(16), FLUSH_SWEEPS + 1);
        scan.visited(10, 10);
        assert_eq!(scan.max_idle(17), FLUSH_SWEEPS);
    }

    #[test]
    fn the_number_of_sweeps_wraps() {
        let mut scan = Scan { next: 0, began: None, previous_began: Some(u32::MAX) };
        assert_eq!(scan.max_idle(0), FLUSH_SWEEPS);
    }
}
