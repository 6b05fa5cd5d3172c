//! Rings of newcomers: of flows that are not proved yet, and of pending DNS queries. A newcomer takes the place of the
//! oldest in its ring. If that one is still a newcomer, it takes one of the next few places, if what has that is none any
//! more, and else it goes. So while most of a ring are no newcomers any more the oldest stays, and in a ring full of newcomers
//! the oldest goes.
//!
//! The oldest goes, because it has had the longest time to be proved. A flood of 93,000 flows a second passes through
//! 16,384 places in 176 ms, so every flow that is proved within that time stays. If the youngest went instead, the flood
//! would take all places once, and each flow that begins later would be gone with the next packet of the flood.
//!
//! Each address family has several rings. The source of what begins decides which one is taken, by its prefix, and if the
//! interface is in the path, by the arm from which it comes. So whoever has only one prefix to send from takes no more than the
//! places of one ring, and who sends with the addresses of a prefix at another arm takes most likely those of another.

use crate::{
    arm::Arm,
    hash::TableKeys,
    parse::{Address, Family},
};

/// Rings per address family; a power of two. No prefix has more than this share of the places.
pub const RINGS: u32 = 8;

/// The places after its own that are free for the oldest, if they are.
pub const AHEAD: u32 = 4;

/// The part of an IPv4 address that decides on the ring: what a site mostly has.
const V4_LEN: u8 = 24;

/// The part of an IPv6 address that decides on the ring: what a site mostly has (RFC 6177).
const V6_LEN: u8 = 56;

/// An odd number, so that different digests stay different (Steele, Lea and Flood, "Fast splittable pseudorandom number
/// generators", OOPSLA 2014: the first of `SplittableRandom`).
const MIXER: u64 = 0xbf58_476d_1ce4_e5b9;

/// Returns the number of the ring for what `source` begins from `arm`. `keys` are secret, so that nobody can choose prefixes
/// that share a ring with others.
#[inline(always)]
pub fn of<A: Address>(source: A, arm: Arm, keys: &TableKeys) -> u32 {
    let address = source.to_address();
    let prefix = match A::FAMILY {
        Family::V4 => address.prefix(96 + V4_LEN).0[1],
        Family::V6 => address.prefix(V6_LEN).0[0],
    };
    let digest = keys.digest([prefix, arm.number()]);
    // Digests of prefixes in a row are as far apart as each other. A few bits of a product hardly hide that.
    let [spread, ..] = keys.spread((digest ^ digest >> 32).wrapping_mul(MIXER));
    spread >> (u32::BITS - RINGS.ilog2())
}

/// Returns the places in each ring, if all rings of a family have room for `newcomers`.
pub const fn places(newcomers: u32) -> u32 {
    let places = newcomers / RINGS;
    if places == 0 { 1 } else { places }
}

#[cfg(test)]
mod tests {
    use std::vec::Vec;

    use super::*;
    use crate::{
        hash::siphash,
        limits::max_unproved,
        parse::{IpAddress, Ipv4, Ipv6},
    };

    fn keys(seed: u64) -> TableKeys {
        let mut number = 0;
        TableKeys::random(|| {
            number += 1;
            siphash([seed, 7], [number])
        })
    }

    fn v4(address: u32) -> Ipv4 {
        Ipv4::of(IpAddress::mapped(address.to_be_bytes()))
    }

    fn v6(high: u64, low: u64) -> Ipv6 {
        Ipv6::of(IpAddress([high, low]))
    }

    #[test]
    fn neighbouring_prefixes_spread_over_the_rings() {
        const IN_A_ROW: u32 = 30;
        for seed in 0..300 {
            let keys = keys(seed);
            for start in (0..20 * IN_A_ROW).step_by(IN_A_ROW as usize) {
                let mut found = [[0; RINGS as usize]; 2];
                for prefix in start..start + IN_A_ROW {
                    found[0][of(v4(0x0a00_0000 + (prefix << 8)), Arm::FIRST, &keys) as usize] += 1;
                    found[1][of(v6(0xfd << 56 | u64::from(prefix) << 8, 1), Arm::FIRST, &keys) as usize] += 1;
                }
                let most = found.as_flattened().iter().max();
                assert!(most < Some(&16), "seed {seed}: {most:?} of {IN_A_ROW} share a ring");
            }
        }
    }

    #[test]
    fn hosts_of_a_prefix_share_a_ring() {
        for seed in 0..50 {
            let keys = keys(seed);
            for host in 0..256 {
                assert_eq!(
                    of(v4(0xc000_0200 + host), Arm::FIRST, &keys),
                    of(v4(0xc000_0200), Arm::FIRST, &keys)
                );
                let (subnet, host) = (u64::from(host), u64::from(host).rotate_right(9));
                assert_eq!(
                    of(v6(0x2001_0db8_0000_0100 + subnet, host), Arm::FIRST, &keys),
                    of(v6(0x2001_0db8_0000_0100, 1), Arm::FIRST, &keys)
                );
            }
        }
    }

    #[test]
    fn prefixes_beside_each_other_take_all_rings_evenly() {
        for seed in 0..20 {
            let keys = keys(seed);
            let rings: [Vec<u32>; 2] = [
                (0..4096).map(|number| of(v4(0x0a00_0000 + (number << 8)), Arm::FIRST, &keys)).collect(),
                (0..4096)
                    .map(|number| of(v6(0x2001_0db8_0000_0000 + (number << 8), 1), Arm::FIRST, &keys))
                    .collect(),
            ];
            for (ring, rings) in (0..RINGS).flat_map(|ring| rings.iter().map(move |rings| (ring, rings))) {
                let share = rings.iter().filter(|&&it| it == ring).count();
                assert!((256..=1024).contains(&share), "seed {seed}, ring {ring}: {share} of 4,096");
            }
        }
    }

    /// Nobody can know which prefixes share the ring of another.
    #[test]
    fn two_prefixes_seldom_share_a_ring_for_long() {
        let shared = (0..4000).filter(|&seed| {
            let keys = keys(seed);
            of(v4(0xc000_0200), Arm::FIRST, &keys) == of(v4(0xc633_6400), Arm::FIRST, &keys)
        });
        let shared = shared.count();
        assert!((350..=650).contains(&shared), "with {shared} of 4,000 keys");
    }

    #[test]
    fn a_prefix_seldom_has_the_same_ring_at_two_arms() {
        let shared = (0..4000).filter(|&seed| {
            let (keys, arm) = (keys(seed), Arm::new(1, 0, true));
            of(v4(0xc000_0200), arm, &keys) == of(v4(0xc000_0200), arm.opposite(), &keys)
        });
        let shared = shared.count();
        assert!((350..=650).contains(&shared), "with {shared} of 4,000 keys");
    }

    #[test]
    fn newcomers_leave_most_of_the_table_and_half_of_the_pool() {
        let pools = [(131_072, 131_072), (4_000_000, 131_072), (131_072, 1_000), (1, 1)];
        assert_eq!(pools.map(|(flows, pending)| max_unproved(flows, pending)), [16_384, 65_536, 500, 0]);
    }

    #[test]
    fn a_ring_has_a_place_however_few_there_are() {
        assert_eq!([0, 7, 8, 15, 16, 16_384].map(places), [1, 1, 1, 1, 2, 2048]);
    }
}
