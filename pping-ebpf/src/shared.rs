//! Memory that several CPUs use at once: the values of maps.
//!
//! A reference would promise the compiler that the memory does not change meanwhile, or that nothing else looks at it. So
//! no references are made: a [`Shared`] reads and writes words, each by one instruction, and [`field!`] leads to the
//! fields of a structure. Memory that belongs to one CPU at a time is behind a lock instead, whose holder gets references.

use core::{intrinsics::is_val_statically_known, marker::PhantomData, mem::MaybeUninit};

use aya_ebpf::maps::{Array, HashMap, PerCpuArray};
use pping_common::flow::Endpoint;

use crate::{
    bounds::within,
    launder::{launder_index, launder_ptr},
};

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

    /// A field of the value: `value.at(field!(Type, name))`.
    #[inline(always)]
    pub(crate) fn at<F>(self, field: Field<T, F>) -> Shared<F> {
        // SAFETY: the field lies inside the value: `field!` has its offset from the compiler.
        Shared(unsafe { self.0.cast::<u8>().add(field.offset).cast() })
    }

    /// Reads a word by one instruction: never half of one value and half of another.
    #[inline(always)]
    pub(crate) fn read(self) -> T
    where
        T: Copy,
    {
        const { assert!(is_word::<T>()) };
        // SAFETY: valid and aligned, as `new` requires. Programs and agent write only values of this type.
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

    /// Writes a word only if that changes it. Otherwise other CPUs keep the cache line.
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

impl<T: Copy> Shared<T> {
    /// Reads the whole value, word by word. Each word is one that was there at some time.
    #[inline(always)]
    pub(crate) fn load(self) -> T {
        let mut value = MaybeUninit::<T>::uninit();
        // SAFETY: both are valid, aligned, and of this size.
        unsafe { copy(self.0, value.as_mut_ptr()) };
        // SAFETY: all of it was written, from words of a value of this type.
        unsafe { value.assume_init() }
    }

    /// Reads the whole value into memory outside the stack, which is small.
    #[inline(always)]
    pub(crate) fn load_to(self, value: &mut T) {
        // SAFETY: both are valid, aligned, and of this size.
        unsafe { copy(self.0, value) };
    }

    /// Writes the whole value, word by word.
    #[inline(always)]
    pub(crate) fn store(self, value: &T) {
        // SAFETY: both are valid, aligned, and of this size.
        unsafe { copy(value, self.0) };
    }

    /// Reads one word of 64 bits of the value.
    #[inline(always)]
    pub(crate) fn word(self, number: usize) -> u64 {
        let number = if number < size_of::<T>() / size_of::<u64>() { number } else { 0 };
        const { assert!(align_of::<T>() == align_of::<u64>()) };
        // SAFETY: inside the value, and aligned.
        unsafe { self.0.cast::<u64>().add(number).read_volatile() }
    }

    /// Returns the same value with its pointer laundered.
    #[inline(always)]
    pub(crate) fn laundered(self) -> Self {
        Self(launder_ptr(self.0).cast_mut())
    }
}

impl<T> Shared<[T; 2]> {
    /// The element of an endpoint.
    #[inline(always)]
    pub(crate) fn of(self, endpoint: Endpoint) -> Shared<T> {
        // SAFETY: inside the array: there are two endpoints. (An endpoint that is read from memory is masked there, for
        // the verifier.)
        Shared(unsafe { self.0.cast::<T>().add(endpoint as usize) })
    }
}

impl<T, const N: usize> Shared<[T; N]> {
    /// The element at an index modulo `N`, a power of two.
    #[inline(always)]
    pub(crate) fn element(self, index: usize) -> Shared<T> {
        // A constant index becomes part of an instruction's offset.
        let index = if is_val_statically_known(index) { index % N } else { within::<N>(index) };
        // SAFETY: inside the array.
        Shared(unsafe { self.0.cast::<T>().add(index) })
    }

    /// The elements, one after the other.
    #[inline(always)]
    pub(crate) fn iter(self) -> impl Iterator<Item = Shared<T>> {
        // SAFETY: inside the array.
        (0..N).map(move |index| Shared(unsafe { self.0.cast::<T>().add(index) }))
    }

    /// The element at an index, if there is one.
    #[inline(always)]
    pub(crate) fn get(self, index: usize) -> Option<Shared<T>> {
        let index = launder_index(index);
        // SAFETY: inside the array, which the verifier sees by this comparison.
        (index < N).then(|| Shared(unsafe { self.0.cast::<T>().add(index) }))
    }
}

impl<T: Copy> Shared<T> {
    /// Whether this value equals `value`, word by word.
    #[inline(always)]
    pub(crate) fn has_words(self, value: &T) -> bool {
        const { assert!(size_of::<T>().is_multiple_of(8) && align_of::<T>() == 8) };
        let (other, own) = ((&raw const *value).cast::<u64>(), self.0.cast::<u64>());
        let mut difference = 0;
        for word in 0..size_of::<T>() / 8 {
            // SAFETY: both have this many words, which are valid and aligned, as `new` requires.
            difference |= unsafe { own.add(word).read_volatile() ^ other.add(word).read() };
        }
        difference == 0
    }
}

impl Shared<u64> {
    /// Adds to a counter of this CPU, which others only read. The sweep adds to the same counters by [`Shared::add`].
    #[inline(always)]
    pub(crate) fn count(self, more: u64) {
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

/// Copies a value word by word, by the largest words that its alignment allows.
///
/// # Safety
/// Both are valid, and aligned for `T`.
#[inline(always)]
unsafe fn copy<T>(from: *const T, to: *mut T) {
    macro_rules! copy {
        ($word:ty) => {
            for word in 0..size_of::<T>() / size_of::<$word>() {
                // SAFETY: as this function requires, and inside the values.
                unsafe {
                    to.cast::<$word>()
                        .add(word)
                        .write_volatile(from.cast::<$word>().add(word).read_volatile())
                };
            }
        };
    }
    if align_of::<T>() >= align_of::<u64>() {
        copy!(u64);
    } else if align_of::<T>() >= align_of::<u32>() {
        copy!(u32);
    } else {
        copy!(u8);
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
