//! [`Shared`] memory as kernel programs use it: the values of maps, arrays with bounds that the verifier sees, and counters.

use core::intrinsics::{AtomicOrdering, atomic_xadd, is_val_statically_known};

use aya_ebpf::maps::{Array, HashMap, PerCpuArray};
use pping_common::shared;

use crate::barrier::{barrier_index, barrier_ptr, within};

/// What all files that use shared memory need.
pub(crate) mod prelude {
    pub(crate) use pping_common::field;

    pub(crate) use super::{Add as _, Barrier as _, Count as _, Shared, SharedArray as _, SharedMap as _};
}

/// A value of a map, or a part of one. Values stay valid for the program's run.
pub(crate) type Shared<T> = shared::Shared<'static, T>;

/// Memory of which the verifier and the compiler can be made to forget the pointer.
pub(crate) trait Barrier {
    /// Returns the same memory, by a pointer of which nothing is known.
    fn behind_barrier(self) -> Self;
}

impl<T> Barrier for Shared<T> {
    #[inline(always)]
    fn behind_barrier(self) -> Self {
        // SAFETY: the same pointer.
        unsafe { Self::new(barrier_ptr(self.as_ptr()).cast_mut()) }
    }
}

/// Arrays, with bounds that the verifier sees.
pub(crate) trait SharedArray {
    /// The elements.
    type Element;

    /// The element at an index modulo the length, a power of two.
    fn element(self, index: usize) -> Shared<Self::Element>;

    /// The element at an index, if there is one.
    fn get(self, index: usize) -> Option<Shared<Self::Element>>;
}

impl<T, const N: usize> SharedArray for Shared<[T; N]> {
    type Element = T;

    #[inline(always)]
    fn element(self, index: usize) -> Shared<T> {
        // A constant index becomes part of an instruction's offset.
        let index = if is_val_statically_known(index) { index % N } else { within::<N>(index) };
        // SAFETY: inside the array.
        unsafe { Shared::new(self.as_ptr().cast::<T>().add(index)) }
    }

    #[inline(always)]
    fn get(self, index: usize) -> Option<Shared<T>> {
        let index = barrier_index(index);
        // SAFETY: inside the array, which the verifier sees by this comparison.
        (index < N).then(|| unsafe { Shared::new(self.as_ptr().cast::<T>().add(index)) })
    }
}

/// Counters of several CPUs.
pub(crate) trait Add<T> {
    /// Adds to a counter by the one atomic instruction that every kernel has: other CPUs, or a softirq on this one, may add to
    /// it at the same time.
    fn add(self, more: T);
}

impl Add<u64> for Shared<u64> {
    #[inline(always)]
    fn add(self, more: u64) {
        // SAFETY: valid and aligned, as `Shared::new` requires.
        unsafe {
            atomic_xadd::<u64, u64, { AtomicOrdering::Relaxed }>(self.as_ptr(), more);
        }
    }
}

impl Add<u32> for Shared<u32> {
    #[inline(always)]
    fn add(self, more: u32) {
        // SAFETY: valid and aligned, as `Shared::new` requires.
        unsafe {
            atomic_xadd::<u32, u32, { AtomicOrdering::Relaxed }>(self.as_ptr(), more);
        }
    }
}

/// Counters of one CPU.
pub(crate) trait Count {
    /// Adds to a counter of this CPU, which others only read. The sweep adds to the same counters by [`Add`].
    fn count(self, more: u64);
}

impl Count for Shared<u64> {
    #[inline(always)]
    fn count(self, more: u64) {
        self.write(self.read().wrapping_add(more));
    }
}

/// A map whose values several CPUs use at once.
pub(crate) trait SharedMap<K> {
    /// Its values.
    type Value;

    /// The value of a key or an index.
    fn shared(&self, key: K) -> Option<Shared<Self::Value>>;
}

impl<T> SharedMap<u32> for Array<T> {
    type Value = T;

    #[inline(always)]
    fn shared(&self, index: u32) -> Option<Shared<T>> {
        // SAFETY: a value of a map.
        self.get_ptr_mut(index).map(|value| unsafe { Shared::new(value) })
    }
}

impl<T> SharedMap<u32> for PerCpuArray<T> {
    type Value = T;

    #[inline(always)]
    fn shared(&self, index: u32) -> Option<Shared<T>> {
        // SAFETY: a value of a map, on this CPU.
        self.get_ptr_mut(index).map(|value| unsafe { Shared::new(value) })
    }
}

impl<K, V> SharedMap<&K> for HashMap<K, V> {
    type Value = V;

    #[inline(always)]
    fn shared(&self, key: &K) -> Option<Shared<V>> {
        // SAFETY: a value of a map. It stays valid for the program's run, although it may get another key.
        self.get_ptr_mut(key).map(|value| unsafe { Shared::new(value) })
    }
}
