//! Counting what an endpoint of a flow sends, by one addition per packet.
//!
//! [`Hot::traffic`](crate::flow::Hot) has all packets and bytes so far in one number: `packets * 2^38 + bytes`, modulo 2^64.
//! The totals, converted the same way, give another such number. The difference of the two is what was sent since the
//! totals were updated. It is exact below 2^25 packets and 2^37 bytes, even if only one of the totals has been updated
//! yet. If a sweep comes to each flow every 16 s, as when a million flows are busy, that allows two million packets and
//! 8 GB a second for one endpoint of one flow. If it comes every second, it allows 16 times as much.
//!
//! A CPU that reads the totals and `traffic` while a sweep updates the totals may find either of the totals, or both,
//! newer than `traffic`: not every processor reads in the order of the program. The difference is then negative in
//! packets, in bytes, or in both, and [`Sent::with`] takes that much off. So it returns what `traffic` said when it was
//! read, whatever the totals were.

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

    /// Returns what was sent since these totals, or nothing if they are newer. `traffic` is the number that all packets
    /// are added to. No other CPU may write the totals meanwhile.
    #[inline(always)]
    #[must_use]
    pub fn since(self, traffic: u64) -> Self {
        let since = traffic.wrapping_sub((self.packets << PACKETS_SHIFT).wrapping_add(self.bytes));
        let since = if since >> 63 == 0 { since } else { 0 };
        Self { packets: since >> PACKETS_SHIFT, bytes: since & ((1 << PACKETS_SHIFT) - 1) }
    }

    /// Returns all that was sent: these totals, and what was sent since. If the totals are newer than `traffic`, returns what
    /// was sent until then.
    #[inline(always)]
    #[must_use]
    pub fn with(self, traffic: u64) -> Self {
        let since = traffic.wrapping_sub((self.packets << PACKETS_SHIFT).wrapping_add(self.bytes)) as i64;
        // Rounded, so that what is left has the sign of the bytes.
        let packets = since.wrapping_add(1 << (PACKETS_SHIFT - 1)) >> PACKETS_SHIFT;
        let bytes = since.wrapping_sub(packets << PACKETS_SHIFT);
        // Less than nothing comes from totals and `traffic` of different flows, if another one takes the slot meanwhile.
        let add =
            |total: u64, more: i64| total.wrapping_add_signed(more).cast_signed().max(0).cast_unsigned();
        Self { packets: add(self.packets, packets), bytes: add(self.bytes, bytes) }
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
            later in (0_u32..1 << 24, 0_u64..1 << 36),
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
            prop_assert_eq!(now.since(traffic), Sent::default());
            // Each of the two totals is old, or that of the moment, or newer.
            let newer = Sent { packets: now.packets + u64::from(later.0), bytes: now.bytes + later.1 };
            for packets in [totals.packets, now.packets, newer.packets] {
                for bytes in [totals.bytes, now.bytes, newer.bytes] {
                    let read = Sent { packets, bytes };
                    prop_assert_eq!(read.with(traffic), now, "{:?}", read);
                }
            }
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
    fn totals_of_another_flow_give_numbers_that_exist() {
        let most = 1 << 40;
        let former = Sent { packets: 5_000_000, bytes: most };
        for traffic in [0, Sent::one(100), Sent::one(0).wrapping_sub(1)] {
            for totals in
                [former, Sent::default(), Sent { packets: 0, ..former }, Sent { bytes: 0, ..former }]
            {
                let sent = totals.with(traffic);
                assert!(sent.packets < most && sent.bytes < 2 * most, "{totals:?} with {traffic}: {sent:?}");
            }
        }
    }
}
