//! Memory that several CPUs use at once: the values of maps.
//!
//! A reference to it would promise the compiler that it does not change meanwhile, or that nothing else looks at it. So there are
//! none: a [`Shared`] reads and writes words, each by one instruction, and [`field!`] leads to the fields of a structure. What
//! belongs to one CPU at a time is behind a lock instead, which hands out references as long as it is held.

use core::{intrinsics::is_val_statically_known, marker::PhantomData};

use crate::{bounds::within, launder::launder_index};

/// A value of a map, or a part of one.
pub(crate) struct Shared<T>(*mut T);

impl<T> Clone for Shared<T> {
    #[inline(always)]
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Shared<T> {}

impl<T> Shared<T> {
    /// # Safety
    /// `value` is, or is part of, a value of a map that is valid for the program's run.
    #[inline(always)]
    pub(crate) const unsafe fn new(value: *mut T) -> Self {
        Self(value)
    }

    /// The address, for instructions of [`crate::sync`] and for locks that hand out references.
    #[inline(always)]
    pub(crate) fn as_ptr(self) -> *mut T {
        self.0
    }

    /// A field of it: `value.at(field!(Type, name))`.
    #[inline(always)]
    pub(crate) fn at<F>(self, field: Field<T, F>) -> Shared<F> {
        // SAFETY: the field lies inside the value, as `field!` has it from the compiler.
        Shared(unsafe { self.0.cast::<u8>().add(field.offset).cast() })
    }

    /// Reads a word by one instruction: what was there at some time, never half of one value and half of another.
    #[inline(always)]
    pub(crate) fn read(self) -> T
    where
        T: Copy,
    {
        const { assert!(is_word::<T>()) };
        // SAFETY: valid and aligned, as of `new`. Programs and agent only write values of this type.
        unsafe { self.0.read_volatile() }
    }

    /// Writes a word by one instruction.
    #[inline(always)]
    pub(crate) fn write(self, value: T)
    where
        T: Copy,
    {
        const { assert!(is_word::<T>()) };
        // SAFETY: as above.
        unsafe { self.0.write_volatile(value) };
    }

    /// Writes a word only if that changes it, which otherwise leaves the cache line to other CPUs.
    #[expect(dead_code, reason = "for the state of flows, which does not use it yet")]
    #[inline(always)]
    pub(crate) fn update(self, value: T)
    where
        T: Copy + PartialEq,
    {
        if self.read() != value {
            self.write(value);
        }
    }
}

impl<T, const N: usize> Shared<[T; N]> {
    /// The element at an index modulo `N`, a power of two.
    #[inline(always)]
    pub(crate) fn element(self, index: usize) -> Shared<T> {
        // An index that the compiler knows becomes part of an instruction's offset.
        let index = if is_val_statically_known(index) { index % N } else { within::<N>(index) };
        // SAFETY: inside the array.
        Shared(unsafe { self.0.cast::<T>().add(index) })
    }

    /// The element at an index, if there is one.
    #[expect(dead_code, reason = "for the state of flows, which does not use it yet")]
    #[inline(always)]
    pub(crate) fn get(self, index: usize) -> Option<Shared<T>> {
        let index = launder_index(index);
        // SAFETY: inside the array, which the verifier sees by this comparison.
        (index < N).then(|| Shared(unsafe { self.0.cast::<T>().add(index) }))
    }
}

impl Shared<u64> {
    /// Adds to a counter of this CPU's own, which others only read. The sweep may do so too, by [`crate::sync::add`].
    #[inline(always)]
    pub(crate) fn count(self, more: u64) {
        self.write(self.read().wrapping_add(more));
    }
}

const fn is_word<T>() -> bool {
    matches!(size_of::<T>(), 1 | 2 | 4 | 8) && align_of::<T>() == size_of::<T>()
}

/// A field of type `F` in a structure `T`. Made by [`field!`].
pub(crate) struct Field<T, F> {
    offset: usize,
    of: PhantomData<fn(&T) -> &F>,
}

impl<T, F> Clone for Field<T, F> {
    #[inline(always)]
    fn clone(&self) -> Self {
        *self
    }
}

impl<T, F> Copy for Field<T, F> {}

impl<T, F> Field<T, F> {
    /// `field` says what type is at `offset`.
    pub(crate) const fn new(offset: usize, field: fn(&T) -> &F) -> Self {
        let _ = field;
        Self { offset, of: PhantomData }
    }
}

/// A field of a structure, for [`Shared::at`]: `field!(Bucket, busy)`.
macro_rules! field {
    ($type:ty, $($name:tt).+) => {
        const {
            $crate::shared::Field::new(core::mem::offset_of!($type, $($name).+), |value: &$type| &value.$($name).+)
        }
    };
}
pub(crate) use field;
