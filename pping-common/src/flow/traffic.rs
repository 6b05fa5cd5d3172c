//! Counting what an endpoint of a flow sends, by one addition for each packet.
//!
//! [`Hot::traffic`](super::Hot) has packets and bytes since the beginning in one number: `packets * 2^38 + bytes`, modulo 2^64. How
//! many of each came since the totals were last brought up to date is the difference between that number and the one that the totals
//! make: as long as these are fewer than 2^25 packets and 2^38 bytes, nothing is lost, and it does not matter whether either of the
//! totals is read before or after it was brought up to date. That is two million packets and 17 GB a second, of one endpoint of one
//! flow, where a sweep comes to each flow every 16 s, as it does when a million flows are busy; 16 times as much where it does
//! every second.

const PACKETS_SHIFT: u32 = 38;

/// Packets and bytes of an endpoint. Bytes are those above the transport header.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sent {
    /// Packets.
    pub packets: u64,
    /// Bytes.
    pub bytes: u64,
}

impl Sent {
    /// The number to add for one packet.
    #[inline(always)]
    pub fn one(bytes: u32) -> u64 {
        1 << PACKETS_SHIFT | u64::from(bytes)
    }

    /// What was sent since `self`, by the number that all packets were added to.
    #[inline(always)]
    #[must_use]
    pub fn since(self, traffic: u64) -> Self {
        let since = traffic.wrapping_sub((self.packets << PACKETS_SHIFT).wrapping_add(self.bytes));
        // The totals may be newer than that number, where one CPU reads both while another counts.
        let since = if since >> 63 == 0 { since } else { 0 };
        Self { packets: since >> PACKETS_SHIFT, bytes: since & ((1 << PACKETS_SHIFT) - 1) }
    }

    /// All that was sent: `self` and what came since.
    #[inline(always)]
    #[must_use]
    pub fn with(self, traffic: u64) -> Self {
        let since = self.since(traffic);
        Self {
            packets: self.packets.wrapping_add(since.packets),
            bytes: self.bytes.wrapping_add(since.bytes),
        }
    }

    /// Whether so much came since that the totals have to be brought up to date before another packet.
    pub fn is_far_behind(self, traffic: u64) -> bool {
        let since = self.since(traffic);
        since.packets >> (62 - PACKETS_SHIFT) != 0 || since.bytes >> (PACKETS_SHIFT - 1) != 0
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn totals_are_exact_however_late_they_are_read(
            before in (any::<u32>(), any::<u32>()),
            packets in proptest::collection::vec(0_u32..=1 << 20, 0..200),
        ) {
            let totals = Sent { packets: u64::from(before.0) << 7, bytes: u64::from(before.1) << 17 };
            let mut traffic = (totals.packets << PACKETS_SHIFT).wrapping_add(totals.bytes);
            for &bytes in &packets {
                traffic = traffic.wrapping_add(Sent::one(bytes));
            }
            let sent = Sent {
                packets: packets.len() as u64,
                bytes: packets.iter().map(|&bytes| u64::from(bytes)).sum(),
            };
            prop_assert_eq!(totals.since(traffic), sent);
            let now = totals.with(traffic);
            prop_assert_eq!(now, Sent {
                packets: totals.packets + sent.packets,
                bytes: totals.bytes + sent.bytes,
            });
            // One of the two totals was written already.
            let half = Sent { packets: now.packets, bytes: totals.bytes };
            prop_assert_eq!(half.with(traffic), now);
            let half = Sent { packets: totals.packets, bytes: now.bytes };
            prop_assert_eq!(half.with(traffic), now);
            prop_assert_eq!(now.since(traffic), Sent::default());
        }
    }

    #[test]
    fn totals_are_brought_up_to_date_in_time() {
        let totals = Sent { packets: 7, bytes: 1 << 50 };
        let traffic = (totals.packets << PACKETS_SHIFT).wrapping_add(totals.bytes);
        assert!(!totals.is_far_behind(traffic));
        assert!(totals.is_far_behind(traffic.wrapping_add(1 << (PACKETS_SHIFT - 1))));
        assert!(totals.is_far_behind(traffic.wrapping_add(1 << 62)));
    }

    #[test]
    fn totals_that_are_newer_than_the_count_are_all_there_is() {
        let totals = Sent { packets: 9, bytes: 900 };
        assert_eq!(totals.with(Sent::one(100).wrapping_mul(8)), totals);
    }
}
