//! Hashes of texts that stay the same in every run and version, unlike those of the standard library.

/// Returns the fingerprint of a sequence of texts: FNV-1a in 128 bits (<http://www.isthe.com/chongo/tech/comp/fnv/>).
/// Among a million texts, two share a fingerprint with a chance of 1 in 10^27.
pub(crate) fn fingerprint(parts: &[&str]) -> u128 {
    const BASIS: u128 = 0x6c62_272e_07bb_0142_62b8_2175_6295_c58d;
    const PRIME: u128 = 0x0000_0000_0100_0000_0000_0000_0000_013b;
    // 0xff ends each part, because it never occurs in UTF-8.
    let bytes = parts.iter().flat_map(|part| part.bytes().chain([0xff]));
    bytes.fold(BASIS, |hash, byte| (hash ^ u128::from(byte)).wrapping_mul(PRIME))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_in_every_version_and_another_for_every_text() {
        assert_eq!(fingerprint(&[]), 0x6c62_272e_07bb_0142_62b8_2175_6295_c58d);
        assert_ne!(fingerprint(&["ab", "c"]), fingerprint(&["a", "bc"]));
        assert_ne!(fingerprint(&["a"]), fingerprint(&["a", ""]));
        assert_eq!(fingerprint(&["eth0"]), ETH0);
    }

    /// Computed by three lines of Python.
    const ETH0: u128 = 0x0433_9235_0583_d94f_7081_391e_e67a_1251;
}
