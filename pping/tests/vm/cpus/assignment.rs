//! Which expected sample each sample is.

use std::collections::BTreeSet;

/// Assigns an expected sample to as many samples as possible. `near` has for each sample the expected ones that it may
/// be, the nearest first. Returns which samples have one, and which expected samples are assigned.
///
/// The nearest is not always the right one. If tcpdump was late by about the time between two packets, a sample is
/// nearest to the packets after its own. The last sample of such a row would then be left without any.
pub(super) fn assign(near: &[Vec<usize>], expected: usize) -> (Vec<bool>, Vec<bool>) {
    let mut owners = vec![None; expected];
    let mut is_assigned = vec![false; near.len()];
    for (sample, is_assigned) in is_assigned.iter_mut().enumerate() {
        *is_assigned = find(sample, near, &mut owners, &mut BTreeSet::new());
    }
    (is_assigned, owners.iter().map(Option::is_some).collect())
}

/// Finds an expected sample that is free, or whose sample can be another one.
fn find(
    sample: usize,
    near: &[Vec<usize>],
    owners: &mut [Option<usize>],
    tried: &mut BTreeSet<usize>,
) -> bool {
    near[sample].iter().any(|&at| {
        let is_free = tried.insert(at) && owners[at].is_none_or(|owner| find(owner, near, owners, tried));
        if is_free {
            owners[at] = Some(sample);
        }
        is_free
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_that_are_late_by_one_packet_all_have_their_own() {
        // The first two are nearest to the packet after theirs, and the third is too far from the first packet.
        let (is_assigned, is_found) = assign(&[vec![1, 0], vec![2, 1], vec![2, 1]], 3);
        assert_eq!((is_assigned, is_found), (vec![true; 3], vec![true; 3]));
    }

    #[test]
    fn a_sample_too_many_has_none() {
        let (is_assigned, is_found) = assign(&[vec![0], vec![0], vec![]], 2);
        assert_eq!((is_assigned, is_found), (vec![true, false, false], vec![true, false]));
    }
}
