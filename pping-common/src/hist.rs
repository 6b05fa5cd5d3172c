//! Bins of a histogram of RTTs: those of schema 3 of Prometheus' native histograms, which are those of scale 3 of
//! OpenTelemetry's exponential histograms.
//!
//! Bounds are 2^(k/8) s for integers `k`: 8 bins per octave, and octaves begin at powers of two of a second. A bin
//! includes its upper bound and excludes its lower one. So whole octaves add up to the buckets of a Prometheus histogram,
//! and other programs that use this schema have exactly these bins.
//!
//! Most bounds are irrational, but a time is an integer number of ns: it is at most the bound if it is at most the
//! integer below the bound. Nothing is rounded.

/// Bins per octave.
pub const BINS_PER_OCTAVE: usize = 8;

/// The schema of Prometheus and the scale of OpenTelemetry: the binary logarithm of [`BINS_PER_OCTAVE`].
pub const SCHEMA: i32 = BINS_PER_OCTAVE.ilog2() as i32;

/// Octaves: from 2^-20 s, which is 0.954 us, to 2^6 s, which is 64 s.
pub const OCTAVES: usize = 26;

/// The lowest bound, as a power of two of a second.
pub const FIRST_OCTAVE: i32 = -20;

/// All bins: those of the octaves, and one at each end for shorter and longer times.
pub const BINS: usize = OCTAVES * BINS_PER_OCTAVE + 2;

/// The bin of times up to 2^-20 s.
pub const UNDERFLOW: usize = 0;

/// The bin of times longer than all octaves.
pub const OVERFLOW: usize = BINS - 1;

/// 2^(j/8) s in units of 2^-33 ns, for `j` from 0 to 7, rounded down.
const BOUNDS: [u64; BINS_PER_OCTAVE] = [
    0x7735_9400_0000_0000,
    0x81ff_a7a9_549c_a6e3,
    0x8dc3_b896_0164_a7d9,
    0x9a98_6705_4d51_2391,
    0xa896_5f74_bf06_5071,
    0xb7d8_8a12_d0dd_9ea0,
    0xc87c_3e7d_03cd_bec3,
    0xdaa1_7c2c_d195_55db,
];

/// The bits by which [`BOUNDS`] are shifted to the left.
const SHIFT: i32 = 33;

/// The highest time of [`UNDERFLOW`], ns.
const SHORTEST: u64 = lower_bound(UNDERFLOW + 1);

/// The highest time of all octaves, ns.
const LONGEST: u64 = lower_bound(OVERFLOW);

/// Bits of the longest time, [`LONGEST`].
const BITS: u32 = u64::BITS - LONGEST.leading_zeros();

/// The bits by which a time is shifted to the left, so that the highest bit of [`LONGEST`] becomes the highest of the
/// word.
const TO_TOP: u32 = u64::BITS - BITS;

/// The bits of a time below its highest one that index [`CELLS`].
const CELL_BITS: u32 = 4;

/// Cells divide each power of two of ns into equal parts. A cell is narrower than any bin, so it has at most one bound
/// inside. Its high bits are that bound, of a time whose highest bit is shifted to the top; its lowest bits are the
/// number of bounds before the cell.
const CELLS: [u64; 1 << CELL_BITS] = {
    let mut cells = [0; 1 << CELL_BITS];
    let mut cell = 0;
    while cell < cells.len() {
        let first = 1 << (u64::BITS - 1) | (cell as u64) << (u64::BITS - 1 - CELL_BITS);
        let last = first | u64::MAX >> (1 + CELL_BITS);
        // If the cell has no bound inside, no time is beyond it.
        let (mut before, mut bound, mut part) = (0, u64::MAX, 1);
        while part <= BINS_PER_OCTAVE {
            // The powers of two of a second come last within a power of two of ns.
            let other = if part == BINS_PER_OCTAVE { BOUNDS[0] << 1 } else { BOUNDS[part] };
            if other < first {
                before += 1;
            } else if other <= last {
                bound = other;
            }
            part += 1;
        }
        cells[cell] = bound >> TO_TOP << TO_TOP | before;
        cell += 1;
    }
    cells
};

/// Returns the bin of an RTT in ns.
#[inline(always)]
pub fn bin(rtt: u64) -> usize {
    if rtt <= SHORTEST {
        return UNDERFLOW;
    }
    if rtt > LONGEST {
        return OVERFLOW;
    }
    let (shifted, time) = to_top(rtt << TO_TOP);
    let cell = CELLS[(time >> (u64::BITS - 1 - CELL_BITS)) as usize % CELLS.len()];
    // The number in the cell's lowest bits lies below the bits that a time can have.
    let before = cell as usize % (1 << CELL_BITS) + usize::from(time > cell);
    LAST_POWER + before - shifted as usize * BINS_PER_OCTAVE
}

/// The bin of the shortest time that has [`BITS`] bits.
const LAST_POWER: usize = OVERFLOW - BINS_PER_OCTAVE;

/// Shifts `time` to the left until its highest bit is the highest of the word. Returns the number of bits shifted, and
/// the result. It works in steps, because BPF has no instruction that counts leading zeros.
#[inline(always)]
fn to_top(mut time: u64) -> (u32, u64) {
    let mut shifted = 0;
    if time < 1 << (64 - 16) {
        time <<= 16;
        shifted += 16;
    }
    if time < 1 << (64 - 8) {
        time <<= 8;
        shifted += 8;
    }
    if time < 1 << (64 - 4) {
        time <<= 4;
        shifted += 4;
    }
    if time < 1 << (64 - 2) {
        time <<= 2;
        shifted += 2;
    }
    if time < 1 << (64 - 1) {
        time <<= 1;
        shifted += 1;
    }
    (shifted, time)
}

/// The highest RTT of a bin, ns; `u64::MAX` for [`OVERFLOW`].
pub const fn upper_bound(bin: usize) -> u64 {
    if bin >= OVERFLOW { u64::MAX } else { lower_bound(bin + 1) }
}

/// The highest RTT of the bin below, ns.
pub const fn lower_bound(bin: usize) -> u64 {
    if bin == UNDERFLOW {
        return 0;
    }
    let (octave, part) = ((bin - 1) / BINS_PER_OCTAVE, (bin - 1) % BINS_PER_OCTAVE);
    BOUNDS[part] >> (SHIFT - FIRST_OCTAVE - octave as i32)
}

/// The number `k` of a bin's upper bound, 2^(k/8) s: its index in Prometheus' native histograms, and one more than its
/// index in OpenTelemetry's. `None` for [`OVERFLOW`], which has no bound, and for [`UNDERFLOW`], which spans many of
/// their bins.
pub const fn index(bin: usize) -> Option<i32> {
    match bin {
        UNDERFLOW | OVERFLOW.. => None,
        bin => Some(bin as i32 + FIRST_OCTAVE * BINS_PER_OCTAVE as i32),
    }
}

/// The representative RTT of a bin, ns: the geometric mean of its bounds, which is within 4.4 % of each. For
/// [`UNDERFLOW`] it is half the bound, for [`OVERFLOW`] the bound.
pub const fn middle(bin: usize) -> u64 {
    match bin {
        UNDERFLOW => upper_bound(UNDERFLOW) / 2,
        OVERFLOW.. => lower_bound(OVERFLOW),
        bin => (lower_bound(bin) as u128 * upper_bound(bin) as u128).isqrt() as u64,
    }
}

#[cfg(test)]
mod tests {
    use num_bigint::BigUint;
    use proptest::prelude::*;

    use super::*;

    /// Whether a time is at most 2^(k/8) s, by exact arithmetic: `rtt^8 <= 10^72 * 2^k`.
    fn is_within(rtt: u64, k: i32) -> bool {
        let (rtt, second) = (BigUint::from(rtt).pow(8), BigUint::from(10_u8).pow(72));
        if k < 0 { rtt << k.unsigned_abs() <= second } else { rtt <= second << k.unsigned_abs() }
    }

    #[test]
    fn the_highest_time_of_a_bin_is_the_integer_below_its_bound() {
        for bin in 1..OVERFLOW {
            let k = index(bin).unwrap();
            let bound = upper_bound(bin);
            assert!(is_within(bound, k) && !is_within(bound + 1, k), "2^({k}/8) s: {bound} ns");
        }
        assert_eq!((index(1), index(OVERFLOW - 1)), (Some(-159), Some(48)));
        assert!(is_within(SHORTEST, -160) && !is_within(SHORTEST + 1, -160));
    }

    #[test]
    fn every_time_around_every_bound_is_in_its_bin() {
        for bin in 0..OVERFLOW {
            let bound = upper_bound(bin);
            for offset in 0..1000.min(bound - lower_bound(bin)) {
                assert_eq!(super::bin(bound - offset), bin, "{offset} ns below {bound}");
            }
            for offset in 1..=1000.min(upper_bound(bin + 1) - bound) {
                assert_eq!(super::bin(bound + offset), bin + 1, "{offset} ns above {bound}");
            }
        }
        assert_eq!((bin(0), bin(u64::MAX)), (UNDERFLOW, OVERFLOW));
    }

    #[test]
    fn octaves_are_powers_of_two_of_a_second() {
        for octave in 0..=OCTAVES {
            let exact = 2_f64.powi(FIRST_OCTAVE + octave as i32) * 1e9;
            assert_eq!(upper_bound(octave * BINS_PER_OCTAVE), exact as u64);
        }
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
            if let Some(k) = index(bin) {
                prop_assert!(is_within(rtt, k) && !is_within(rtt, k - 1));
            }
        }

        #[test]
        fn the_middle_of_a_bin_is_within_4_4_per_cent(rtt in SHORTEST + 1..=LONGEST) {
            let error = middle(bin(rtt)).abs_diff(rtt) as f64 / rtt as f64;
            prop_assert!(error < 0.0445, "{rtt}: {error}");
        }

        #[test]
        fn short_ones_too(rtt in SHORTEST + 1..2_000_000) {
            let error = middle(bin(rtt)).abs_diff(rtt) as f64 / rtt as f64;
            prop_assert!(error < 0.0445, "{rtt}: {error}");
        }
    }
}
