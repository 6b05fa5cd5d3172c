//! How evenly keys fill the table.

use std::{collections::HashSet, vec, vec::Vec};

use super::{Bucket, Candidates, Slot, WAYS, bucket_count, find_way, occupied, prefers_second};
use crate::{
    flow::FlowKey,
    hash::{TableKeys, siphash},
    parse::{Address, IpAddress, Ipv4, Ipv6},
};

const FLOWS: u32 = 131_072;

/// Returns keys that are no secret.
fn table_keys(seed: u64) -> TableKeys {
    let mut number = 0;
    TableKeys::random(|| {
        number += 1;
        siphash([seed, 0], [number])
    })
}

/// Returns keys that differ as little as real ones may: the hosts of one network, and their ports.
fn keys<A: Address>(network: [u64; 2]) -> Vec<FlowKey<A>> {
    let key = |number: u32| FlowKey {
        low: A::of(IpAddress([network[0], network[1] + u64::from(number / 64)])),
        high: A::of(IpAddress([network[0], network[1] + 0x00ff_0000])),
        low_port: 32_768 + (number % 64) as u16,
        high_port: 443,
        interface: 1,
        protocol: 6,
        zero: 0,
    };
    (0..FLOWS).map(key).collect()
}

/// What became of keys.
struct Filled {
    /// The position of each key that found no slot.
    refused: Vec<usize>,
    /// How many keys found one in the first of their buckets.
    in_first: usize,
}

/// Inserts keys.
fn fill<A: Address>(keys: &[FlowKey<A>], seed: u64, flows: u32) -> Filled {
    let count = bucket_count(flows);
    let mut table = vec![Bucket::EMPTY; count as usize];
    let secrets = table_keys(seed);
    let mut filled = Filled { refused: Vec::new(), in_first: 0 };
    for (number, key) in keys.iter().enumerate() {
        let candidates = Candidates::of(key, &secrets, count);
        let [first, second] = [candidates.first, candidates.second].map(|bucket| bucket as usize);
        let in_use = |bucket: usize| occupied(table[bucket].tags.into_iter());
        let is_second = prefers_second(in_use(first), in_use(second));
        let bucket = &mut table[if is_second { second } else { first }];
        match find_way(bucket.tags.into_iter(), 0) {
            Some(free) => {
                bucket.tags[free] = candidates.tag;
                filled.in_first += usize::from(!is_second);
            }
            None => filled.refused.push(number),
        }
    }
    filled
}

#[test]
fn nearly_all_flows_that_a_table_is_for_find_a_slot() {
    for seed in 0..4 {
        let v4 = fill(&keys::<Ipv4>([0, 0xffff_0a00_0000]), seed, FLOWS).refused;
        let v6 = fill(&keys::<Ipv6>([0x2001_0db8_0000_0001, 0]), seed, FLOWS).refused;
        for refused in [v4, v6] {
            assert!(refused.len() < FLOWS as usize / 5_000, "{} found none", refused.len());
            let before = refused.first().copied().unwrap_or(FLOWS as usize);
            assert!(before > FLOWS as usize / 100 * 85, "{before} of {FLOWS} did, then one did not");
        }
    }
}

/// Ports, identifiers or addresses in a row, for some of which a product is hardly a hash.
#[test]
fn keys_in_a_row_fill_the_table_evenly_whatever_the_secrets() {
    const FLOWS: u32 = 8_192;
    const HALF: u32 = FLOWS / 100 * 58;
    let of = |change: fn(&mut FlowKey<Ipv4>, u32)| -> Vec<FlowKey<Ipv4>> {
        let key = keys::<Ipv4>([0, 0xffff_0a00_0000])[0];
        let changed = |number| {
            let mut key = key;
            change(&mut key, number);
            key
        };
        (0..HALF).map(changed).collect()
    };
    let rows = [
        of(|key, number| (key.low_port, key.high_port) = (number as u16, number as u16)),
        of(|key, number| key.low_port = number as u16),
        of(|key, number| key.high = Ipv4::of(IpAddress([0, 0xffff_0b00_0000 + u64::from(number)]))),
    ];
    for seed in 0..400 {
        for (row, keys) in rows.iter().enumerate() {
            let refused = fill(keys, seed, FLOWS).refused;
            assert!(refused.is_empty(), "row {row} with seed {seed}: {} found no slot", refused.len());
        }
    }
}

/// A packet of a flow in its second bucket waits for a cache line more.
#[test]
fn most_flows_of_a_half_full_table_are_in_first_buckets() {
    let half = &keys::<Ipv4>([0, 0xffff_0a00_0000])[..FLOWS as usize / 2];
    let Filled { in_first, .. } = fill(half, 1, FLOWS);
    assert!(in_first * 100 > half.len() * 88, "{in_first} of {}", half.len());
}

#[test]
fn few_flows_find_a_slot_each() {
    for flows in [1, 4, 7, 8, 16, 100, 500] {
        let keys = &keys::<Ipv4>([0, 0xffff_c0a8_0000])[..flows as usize];
        assert!(fill(keys, 1, flows).refused.is_empty(), "of {flows}");
    }
}

#[test]
fn keys_are_told_apart_by_their_tags() {
    let keys = keys::<Ipv4>([0, 0xffff_0a00_0000]);
    let tags: HashSet<_> = keys
        .iter()
        .map(|key| Candidates::of(key, &table_keys(1), 1))
        .map(|candidates| candidates.tag)
        .collect();
    // Tags are odd, so there are 2^31: about four pairs of these keys share one.
    assert!(tags.len() + 16 > keys.len(), "{}", tags.len());
    assert!(!tags.contains(&0));
}

#[test]
fn a_bucket_is_one_that_exists() {
    for key in &keys::<Ipv4>([0, 0xffff_0a00_0000])[..1000] {
        for count in [1, 2, 3, 1000, u32::MAX / WAYS as u32] {
            let candidates = Candidates::of(key, &table_keys(1), count);
            assert!(candidates.first < count && candidates.second < count);
        }
    }
}

#[test]
fn every_slot_is_another() {
    let pairs: Vec<_> = (0..3).flat_map(|bucket| (0..WAYS).map(move |way| (bucket, way))).collect();
    let all: HashSet<u32> = pairs
        .iter()
        .map(|&(bucket, way)| {
            let slot = Slot::new(bucket, way);
            assert_eq!((slot.bucket(), slot.way()), (bucket, way));
            slot.0
        })
        .collect();
    assert_eq!(all.len(), pairs.len());
}

#[test]
fn what_is_taken_is_counted() {
    let mut bucket = Bucket::EMPTY;
    for count in 0..WAYS {
        let tags = || bucket.tags.into_iter();
        assert_eq!((occupied(tags()) as usize, find_way(tags(), 0)), (count, Some(count)));
        bucket.tags[count] = 2 * count as u32 + 1;
    }
    assert_eq!(
        (occupied(bucket.tags.into_iter()) as usize, find_way(bucket.tags.into_iter(), 0)),
        (WAYS, None)
    );
}
