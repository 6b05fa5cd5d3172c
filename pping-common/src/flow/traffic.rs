//! Counting what an endpoint of a flow sends, by one addition per packet.
//!
//! [`Hot::traffic`](super::Hot) has all packets and bytes so far in one number: `packets * 2^38 + bytes`, modulo 2^64.
//! The totals, converted the same way, give another such number. The difference of the two is what was sent since the
//! totals were updated. It is exact below 2^25 packets and 2^38 bytes, even if only one of the totals has been updated
//! yet. If a sweep comes to each flow every 16 s, as when a million flows are busy, that allows two million packets and
//! 17 GB a second for one endpoint of one flow. If it comes every second, it allows 16 times as much.

const PACKETS_SHIFT: u32 = 38;

/// Packets and bytes of an endpoint. Bytes are counted above the transport header.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sent {
    /// Packets.
    pub packets: u64,
    /// Bytes.
    pub bytes: u64,
}

impl Sent {
    /// Returns the number to add for one packet.
    #[inline(always)]
    pub fn one(bytes: u32) -> u64 {
        1 << PACKETS_SHIFT | u64::from(bytes)
    }

    /// Returns what was sent since these totals. `traffic` is the number that all packets are added to.
    #[inline(always)]
    #[must_use]
    pub fn since(self, traffic: u64) -> Self {
        let since = traffic.wrapping_sub((self.packets << PACKETS_SHIFT).wrapping_add(self.bytes));
        // The totals may be newer than `traffic`, if one CPU reads both while another counts.
        let since = if since >> 63 == 0 { since } else { 0 };
        Self { packets: since >> PACKETS_SHIFT, bytes: since & ((1 << PACKETS_SHIFT) - 1) }
    }

    /// Returns all that was sent: these totals, and what was sent since.
    #[inline(always)]
    #[must_use]
    pub fn with(self, traffic: u64) -> Self {
        let since = self.since(traffic);
        Self {
            packets: self.packets.wrapping_add(since.packets),
            bytes: self.bytes.wrapping_add(since.bytes),
        }
    }

    /// Whether so much was sent that the totals must be updated before the next packet.
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
            // One of the two totals has been updated already.
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
