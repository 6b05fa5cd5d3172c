//! Digests of what an answer must repeat.

/// Adds 64 bits to a digest. It needs no key: what an answer repeats is compared with what the same two hosts sent, and an
/// attacker who does not know that does not know its digest.
#[inline(always)]
pub(super) fn mix(digest: u64, bits: u64) -> u64 {
    /// An odd number without a pattern: 2^64 divided by the golden ratio.
    const FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;
    let product = (digest ^ bits).wrapping_mul(FACTOR);
    // The high half of a product is its best.
    product ^ product >> 32
}
