//! The cost of a packet in the kernel programs: the mean time of the timed packets, one in
//! [`TIMED_EVERY`](pping_common::limits::TIMED_EVERY).

use pping_common::{abi::Timed, limits::SECOND};

/// The fewest timed packets that give a mean. Among fewer, one interrupt would decide the result.
const ENOUGH: u64 = 8;

/// [`Recent`] averages at least this many of the latest timed packets, as soon as there are enough.
#[cfg(feature = "live")]
const RECENT: u64 = 256;

/// Returns the mean time of a packet in seconds; `None` while too few were timed.
pub(crate) fn mean(Timed { packets, ns }: Timed) -> Option<f64> {
    (packets >= ENOUGH).then(|| ns as f64 / packets as f64 / SECOND as f64)
}

/// The mean of the latest timed packets.
#[cfg(feature = "live")]
#[derive(Debug, Default)]
pub(crate) struct Recent {
    /// The totals at three moments.
    older: Timed,
    newer: Timed,
    latest: Timed,
}

#[cfg(feature = "live")]
impl Recent {
    /// Takes the totals so far.
    pub(crate) fn take(&mut self, now: Timed) {
        if now.packets < self.latest.packets || now.ns < self.latest.ns {
            // An interface went away with its counters.
            (self.older, self.newer) = (Timed::default(), Timed::default());
        } else if now.packets - self.newer.packets >= RECENT {
            (self.older, self.newer) = (self.newer, now);
        }
        self.latest = now;
    }

    /// Returns the mean time of a packet in seconds; `None` while too few were timed.
    pub(crate) fn mean(&self) -> Option<f64> {
        let Self { older, latest, .. } = self;
        mean(Timed { packets: latest.packets - older.packets, ns: latest.ns - older.ns })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(feature = "live")]
    fn ns(recent: &Recent) -> Option<f64> {
        recent.mean().map(|seconds| (seconds * 1e10).round() / 10.0)
    }

    #[test]
    fn a_few_packets_have_no_mean() {
        assert_eq!(mean(Timed { packets: ENOUGH - 1, ns: 700 }), None);
        assert_eq!(mean(Timed { packets: 10, ns: 255 }), Some(25.5e-9));
    }

    #[cfg(feature = "live")]
    #[test]
    fn mean_cost_survives_a_removed_interface() {
        let mut recent = Recent::default();
        assert_eq!(ns(&recent), None);
        let mut timed = Timed::default();
        let mut second = |packets, each| {
            timed.packets += packets;
            timed.ns += packets * each;
            recent.take(timed);
            ns(&recent)
        };
        assert_eq!(second(5, 30), None);
        assert_eq!(second(5, 40), Some(35.0));
        second(RECENT, 50);
        assert_eq!(second(RECENT, 20), Some(20.0), "what is older is over");
        assert_eq!(second(RECENT / 2, 50), Some(30.0));
        recent.take(Timed { packets: 100, ns: 1700 });
        assert_eq!(ns(&recent), Some(17.0));
        recent.take(Timed { packets: 100, ns: 1700 });
        assert_eq!(ns(&recent), Some(17.0));
    }
}
