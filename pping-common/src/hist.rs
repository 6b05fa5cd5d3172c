//! Bins of a histogram of round-trip times: log-linear, 8 to the octave, as in an `HdrHistogram`.
//!
//! Octaves begin at powers of two of a microsecond, so that sums of whole octaves are the buckets of a Prometheus
//! histogram, exactly. As there, a bin holds its upper bound and not its lower one.

/// Bins to the octave.
pub const BINS_PER_OCTAVE: usize = 8;

/// Octaves: 1 us to 2^26 us, which is 67 s.
pub const OCTAVES: usize = 26;

/// All bins: those of the octaves, and one on each side for what is shorter and longer.
pub const BINS: usize = OCTAVES * BINS_PER_OCTAVE + 2;

/// The bin of what is no longer than 1 us.
pub const UNDERFLOW: usize = 0;

/// The bin of what is longer than all octaves.
pub const OVERFLOW: usize = BINS - 1;

/// The width of the narrowest bins, ns: an eighth of a microsecond.
const UNIT: u64 = 125;

/// The first time beyond all octaves, in units.
const BEYOND: u64 = (BINS_PER_OCTAVE as u64) << OCTAVES;

/// The bin of a round-trip time in ns.
#[inline(always)]
pub fn bin(rtt: u64) -> usize {
    // The upper bound of a bin is its own, hence the 1.
    let units = rtt.saturating_sub(1) / UNIT;
    if units < BINS_PER_OCTAVE as u64 {
        return UNDERFLOW;
    }
    if units >= BEYOND {
        return OVERFLOW;
    }
    // The four highest bits of `units`: 8 to 15.
    let (octave, leading) = leading(units as u32);
    1 + octave as usize * BINS_PER_OCTAVE + leading as usize - BINS_PER_OCTAVE
}

/// How often `units` has to be halved to be below 16, and what it is then. In steps, as BPF has no instruction that
/// counts zeroes.
#[inline(always)]
fn leading(mut units: u32) -> (u32, u32) {
    let mut octave = 0;
    if units >= 1 << (3 + 16) {
        units >>= 16;
        octave += 16;
    }
    if units >= 1 << (3 + 8) {
        units >>= 8;
        octave += 8;
    }
    if units >= 1 << (3 + 4) {
        units >>= 4;
        octave += 4;
    }
    if units >= 1 << (3 + 2) {
        units >>= 2;
        octave += 2;
    }
    if units >= 1 << (3 + 1) {
        units >>= 1;
        octave += 1;
    }
    (octave, units)
}

/// The highest round-trip time of a bin, ns; the highest there is for [`OVERFLOW`].
pub const fn upper_bound(bin: usize) -> u64 {
    if bin >= OVERFLOW { u64::MAX } else { lower_bound(bin + 1) }
}

/// The highest round-trip time of the bin below, ns.
pub const fn lower_bound(bin: usize) -> u64 {
    if bin == UNDERFLOW {
        return 0;
    }
    let (octave, part) = ((bin - 1) / BINS_PER_OCTAVE, (bin - 1) % BINS_PER_OCTAVE);
    ((BINS_PER_OCTAVE + part) as u64 * UNIT) << octave
}

/// The representative round-trip time of a bin, ns: its middle, which is within 6.25 % of each. For what is longer than
/// all octaves it is the lower bound.
pub const fn middle(bin: usize) -> u64 {
    if bin >= OVERFLOW { lower_bound(OVERFLOW) } else { lower_bound(bin).midpoint(upper_bound(bin)) }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn octaves_are_those_of_prometheus() {
        for octave in 0..=OCTAVES {
            let bound = 1000 << octave;
            let first_above = 1 + octave * BINS_PER_OCTAVE;
            assert_eq!(bin(bound), first_above - 1, "2^{octave} us is the highest of its bin");
            assert_eq!(bin(bound + 1), first_above);
            assert_eq!(upper_bound(first_above - 1), bound);
        }
        assert_eq!((bin(0), bin(u64::MAX)), (UNDERFLOW, OVERFLOW));
    }

    #[test]
    fn bins_leave_no_gap() {
        for bin in 0..OVERFLOW {
            assert!(lower_bound(bin) < upper_bound(bin));
            assert_eq!(upper_bound(bin), lower_bound(bin + 1));
        }
    }

    proptest! {
        #[test]
        fn every_time_is_in_the_bin_that_says_so(octave in 0_u32..40, part in 0_u64..u64::MAX) {
            let rtt = (1 << octave) + part % (1 << octave);
            let bin = bin(rtt);
            prop_assert!(lower_bound(bin) < rtt && rtt <= upper_bound(bin));
        }

        #[test]
        fn the_middle_of_a_bin_is_within_6_3_per_cent(rtt in 1_001_u64..=67_108_864_000) {
            let error = middle(bin(rtt)).abs_diff(rtt) as f64 / rtt as f64;
            prop_assert!(error < 0.063, "{rtt}: {error}");
        }

        #[test]
        fn short_ones_too(rtt in 1_001_u64..2_000_000) {
            let error = middle(bin(rtt)).abs_diff(rtt) as f64 / rtt as f64;
            prop_assert!(error < 0.063, "{rtt}: {error}");
        }
    }
}
