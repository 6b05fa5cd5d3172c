//! Hashes. Those of tables have secret keys: anybody can send packets and so choose what is hashed, so the bound on
//! collisions has to hold for any two inputs, whatever they have in common.

use crate::layout::layout;

/// 2^64 divided by the golden ratio: multiples of it spread evenly over the high bits (Knuth, The Art of Computer Programming,
/// 6.4).
pub const GOLDEN_RATIO: u64 = 0x9e37_79b9_7f4a_7c15;

/// Mixes a word into a hash. It has no key, so it is only for what is compared with something that an attacker does not know:
/// what the same two hosts sent before, or a packet that passed this host, sequence numbers and timestamps included.
#[inline(always)]
pub const fn mix(hash: u64, word: u64) -> u64 {
    let product = (hash ^ word).wrapping_mul(GOLDEN_RATIO);
    // The high half of a product is its best.
    product ^ product >> 32
}

/// The secret keys of `TableKeys::digest`, and of what is made of a digest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct TableKeys {
    /// One for each word of a key, at most.
    words: [u64; Self::WORDS],
    /// The multipliers of [`TableKeys::spread`]. All are odd.
    multipliers: [u64; 3],
}

layout!(TableKeys { words, multipliers });

impl TableKeys {
    /// The longest key that has a digest, in words.
    pub const WORDS: usize = 5;

    /// Keys that are no secret yet.
    pub const NONE: Self = Self { words: [0; Self::WORDS], multipliers: [1; 3] };

    /// Makes keys of random numbers.
    pub fn random(mut number: impl FnMut() -> u64) -> Self {
        Self {
            words: core::array::from_fn(|_| number()),
            multipliers: core::array::from_fn(|_| number() | 1),
        }
    }

    /// The same keys, but every digest has the same third spread value. For tests of what has to work with equal tags too.
    #[must_use]
    pub fn with_equal_thirds(self) -> Self {
        let [first, second, _] = self.multipliers;
        Self { multipliers: [first, second, 0], ..self }
    }

    /// Returns the digest of some words: NH of UMAC (RFC 4418, 5.2.2), by halves of 64-bit words. Two different inputs of the
    /// same length have the same digest with a probability of at most 2^-32.
    #[inline(always)]
    pub(crate) fn digest<const N: usize>(&self, words: [u64; N]) -> u64 {
        const { assert!(N <= Self::WORDS) };
        let mut digest = 0_u64;
        for (word, key) in words.into_iter().zip(self.words) {
            let low = (word as u32).wrapping_add(key as u32);
            let high = ((word >> 32) as u32).wrapping_add((key >> 32) as u32);
            digest = digest.wrapping_add(u64::from(low).wrapping_mul(u64::from(high)));
        }
        digest
    }

    /// Returns three numbers of 32 bits that depend on all of a digest. Each is the same for two digests with a probability of
    /// at most 2^-31 (Dietzfelbinger, Hagerup, Katajainen and Penttonen, "A reliable randomized algorithm for the
    /// closest-pair problem", Journal of Algorithms 25(1), 1997: multiply-shift).
    ///
    /// That alone does not spread many keys evenly: the digests of ports or addresses in a row are as far apart as each other,
    /// and so are their products, so that with one in 150 secrets a table that is half full had no slot for thousands of them.
    /// The shift breaks the row, and keeps different digests different.
    #[inline(always)]
    pub(crate) fn spread(&self, digest: u64) -> [u32; 3] {
        let digest = digest ^ digest >> 32;
        self.multipliers.map(|multiplier| (digest.wrapping_mul(multiplier) >> 32) as u32)
    }
}

/// The secret key of [`siphash`].
pub type SipKey = [u64; 2];

/// Returns SipHash-1-3 of some words in memory: a pseudorandom function (Aumasson and Bernstein, "`SipHash`: a fast short-input
/// PRF", INDOCRYPT 2012), with as many rounds as in the hash tables of Linux and of Rust.
#[inline(always)]
pub fn siphash<const N: usize>([low, high]: SipKey, words: [u64; N]) -> u64 {
    let mut state = [
        low ^ 0x736f_6d65_7073_6575,
        high ^ 0x646f_7261_6e64_6f6d,
        low ^ 0x6c79_6765_6e65_7261,
        high ^ 0x7465_6462_7974_6573,
    ];
    let length = (8 * N as u64) << 56;
    for word in words {
        absorb(&mut state, word);
    }
    absorb(&mut state, length);
    state[2] ^= 0xff;
    for _ in 0..3 {
        round(&mut state);
    }
    state[0] ^ state[1] ^ state[2] ^ state[3]
}

#[inline(always)]
fn absorb(state: &mut [u64; 4], word: u64) {
    state[3] ^= word;
    round(state);
    state[0] ^= word;
}

#[inline(always)]
fn round(state: &mut [u64; 4]) {
    let [a, b, c, d] = state;
    *a = a.wrapping_add(*b);
    *b = b.rotate_left(13) ^ *a;
    *a = a.rotate_left(32);
    *c = c.wrapping_add(*d);
    *d = d.rotate_left(16) ^ *c;
    *a = a.wrapping_add(*d);
    *d = d.rotate_left(21) ^ *a;
    *c = c.wrapping_add(*b);
    *b = b.rotate_left(17) ^ *c;
    *c = c.rotate_left(32);
}

#[cfg(test)]
mod tests {
    use std::{
        collections::HashSet,
        hash::{DefaultHasher, Hasher},
        vec::Vec,
    };

    use proptest::prelude::*;

    use super::*;

    fn keys(seed: u64) -> TableKeys {
        let mut number = 0;
        TableKeys::random(|| {
            number += 1;
            siphash([seed, 7], [number])
        })
    }

    proptest! {
        #[test]
        fn siphash_is_that_of_the_standard_library(words: [u64; 3]) {
            let mut hasher = DefaultHasher::new();
            for word in words {
                hasher.write(&word.to_le_bytes());
            }
            prop_assert_eq!(siphash([0, 0], words), hasher.finish());
        }

        #[test]
        fn a_digest_depends_on_each_bit(seed: u64, words: [u64; 5], bit in 0_usize..320) {
            let mut other = words;
            other[bit / 64] ^= 1 << (bit % 64);
            prop_assert_ne!(keys(seed).digest(words), keys(seed).digest(other));
        }
    }

    /// What could be cancelled in a hash that multiplies by a constant, whatever its seed.
    #[test]
    fn words_that_differ_in_their_highest_bits_do_not_collide() {
        let words = [0x2001_0db8_0000_0000, 1, 0x2001_0db8_0000_0001, 1, 0x01bb_c000_0001_0006];
        for seed in 0..1000 {
            let keys = keys(seed);
            let mut found = HashSet::new();
            for bits in 0..1_u64 << 10 {
                let changed = core::array::from_fn::<_, 5, _>(|at| {
                    let (highest, middle) = (bits >> (2 * at) & 1, bits >> (2 * at + 1) & 1);
                    words[at] ^ highest << 63 ^ middle << 31
                });
                assert!(found.insert(keys.digest(changed)), "seed {seed}, bits {bits:b}");
            }
        }
    }

    #[test]
    fn what_is_spread_is_spread_evenly() {
        let keys = keys(1);
        for which in 0..3 {
            let highest: Vec<u32> = (0..4096)
                .map(|number| keys.spread(keys.digest([0x0a00_0001_0a00_0002 + number, 6]))[which] >> 24)
                .collect();
            let most = (0..256).map(|value| highest.iter().filter(|&&other| other == value).count()).max();
            assert!(most < Some(48), "{which}: {most:?} of 4,096 share one of 256 values");
        }
    }
}
