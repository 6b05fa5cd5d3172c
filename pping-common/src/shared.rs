//! Memory that several CPUs use at once: the values of maps, in the kernel programs and in the agent.
//!
//! A reference would promise the compiler that the memory does not change meanwhile, or that nothing else looks at it. So
//! no references are made: a [`Shared`] reads and writes words, each by one instruction, and [`field!`](crate::field) leads
//! to the fields of a structure. Memory that belongs to one CPU at a time is behind a lock instead, whose holder gets
//! references.

use core::{marker::PhantomData, mem::MaybeUninit};

use crate::flow::Endpoint;

/// A value of a map, or a part of one, that is there for `'a`.
#[repr(transparent)]
pub struct Shared<'a, T>(*mut T, PhantomData<&'a T>);

impl<T> Clone for Shared<'_, T> {
    #[inline(always)]
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Shared<'_, T> {}

impl<'a, T> Shared<'a, T> {
    /// # Safety
    /// `value` is, or is part of, a value of a map that is valid for `'a`. It is aligned for `T`, and kernel programs and agent
    /// write only bytes to it that are a valid `T`.
    #[inline(always)]
    pub const unsafe fn new(value: *mut T) -> Self {
        Self(value, PhantomData)
    }

    /// The address, for atomic instructions and for locks that hand out references.
    #[inline(always)]
    pub fn as_ptr(self) -> *mut T {
        self.0
    }

    /// A field of the value: `value.at(field!(Type, name))`.
    #[inline(always)]
    pub fn at<F>(self, field: Field<T, F>) -> Shared<'a, F> {
        // SAFETY: the field lies inside the value: `field!` has its offset from the compiler.
        unsafe { Shared::new(self.0.cast::<u8>().add(field.offset).cast()) }
    }

    /// Reads a word by one instruction: never half of one value and half of another.
    #[inline(always)]
    pub fn read(self) -> T
    where
        T: Copy,
    {
        const { assert!(is_word::<T>()) };
        // SAFETY: valid and aligned, as `new` requires.
        unsafe { self.0.read_volatile() }
    }

    /// Writes a word by one instruction.
    #[inline(always)]
    pub fn write(self, value: T)
    where
        T: Copy,
    {
        const { assert!(is_word::<T>()) };
        // SAFETY: valid and aligned, as `new` requires.
        unsafe { self.0.write_volatile(value) };
    }

    /// Writes a word only if that changes it. Otherwise other CPUs keep the cache line.
    #[inline(always)]
    pub fn update(self, value: T)
    where
        T: Copy + PartialEq,
    {
        if self.read() != value {
            self.write(value);
        }
    }
}

impl<T: Copy> Shared<'_, T> {
    /// Reads the whole value, word by word. Each word is one that was there at some time.
    #[inline(always)]
    pub fn load(self) -> T {
        let mut value = MaybeUninit::<T>::uninit();
        // SAFETY: both are valid, aligned, and of this size.
        unsafe { copy(self.0, value.as_mut_ptr()) };
        // SAFETY: all of it was written, from words of a value of this type.
        unsafe { value.assume_init() }
    }

    /// Reads the whole value into memory outside the stack, which is small in kernel programs.
    #[inline(always)]
    pub fn load_to(self, value: &mut T) {
        // SAFETY: both are valid, aligned, and of this size.
        unsafe { copy(self.0, value) };
    }

    /// The same, to two places. An assignment of the one to the other would read eight bytes where four were written just
    /// before, for which processors wait.
    #[inline(always)]
    pub fn load_to_both(self, value: &mut T, other: &mut T) {
        self.load_to(value);
        // SAFETY: both are valid, aligned, and of this size.
        unsafe { copy(value, other) };
    }

    /// Writes the whole value, word by word.
    #[inline(always)]
    pub fn store(self, value: &T) {
        // SAFETY: both are valid, aligned, and of this size.
        unsafe { copy(value, self.0) };
    }

    /// Reads one word of 64 bits of the value.
    #[inline(always)]
    pub fn word(self, number: usize) -> u64 {
        let number = if number < size_of::<T>() / size_of::<u64>() { number } else { 0 };
        const { assert!(align_of::<T>() == align_of::<u64>()) };
        // SAFETY: inside the value, and aligned.
        unsafe { self.0.cast::<u64>().add(number).read_volatile() }
    }

    /// Whether this value equals `value`, word by word.
    #[inline(always)]
    pub fn has_words(self, value: &T) -> bool {
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

impl<'a, T> Shared<'a, [T; 2]> {
    /// The element of an endpoint.
    #[inline(always)]
    pub fn of(self, endpoint: Endpoint) -> Shared<'a, T> {
        // SAFETY: inside the array: there are two endpoints. (An endpoint that is read from memory is masked there, for
        // the verifier.)
        unsafe { Shared::new(self.0.cast::<T>().add(endpoint as usize)) }
    }
}

impl<'a, T, const N: usize> Shared<'a, [T; N]> {
    /// The element at an index modulo `N`. Kernel programs have their own form, for the verifier.
    #[inline(always)]
    pub fn nth(self, index: usize) -> Shared<'a, T> {
        // SAFETY: inside the array.
        unsafe { Shared::new(self.0.cast::<T>().add(index % N)) }
    }

    /// The elements, one after the other.
    #[inline(always)]
    pub fn iter(self) -> impl Iterator<Item = Shared<'a, T>> {
        // SAFETY: inside the array.
        (0..N).map(move |index| unsafe { Shared::new(self.0.cast::<T>().add(index)) })
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

/// A field of type `F` in a structure `T`. Made by [`field!`](crate::field).
pub struct Field<T, F> {
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
    /// # Safety
    /// `offset` is that of the field that `field` returns, which says its type.
    pub const unsafe fn new(offset: usize, field: fn(&T) -> &F) -> Self {
        let _ = field;
        Self { offset, of: PhantomData }
    }
}

/// A field of a structure, for [`Shared::at`](crate::shared::Shared::at): `field!(Bucket, busy)`.
#[macro_export]
macro_rules! field {
    ($type:ty, $($name:tt).+) => {
        const {
            // SAFETY: offset and type are of the same field.
            unsafe {
                $crate::shared::Field::new(
                    core::mem::offset_of!($type, $($name).+),
                    |value: &$type| &value.$($name).+,
                )
            }
        }
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    #[repr(C)]
    struct Inner {
        low: u16,
        high: u16,
        words: [u32; 3],
    }

    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    #[repr(C)]
    struct Outer {
        first: u64,
        inner: Inner,
    }

    const VALUE: Outer = Outer { first: 7, inner: Inner { low: 1, high: 2, words: [3, 4, 5] } };

    #[test]
    fn fields_are_read_and_written_where_they_are() {
        let mut memory = VALUE;
        // SAFETY: a value that lives longer, and that nothing else uses meanwhile.
        let shared = unsafe { Shared::new(&raw mut memory) };
        assert_eq!(shared.at(field!(Outer, first)).read(), 7);
        assert_eq!(shared.at(field!(Outer, inner.high)).read(), 2);
        assert_eq!(shared.load(), VALUE);
        assert!(shared.has_words(&VALUE));
        let words = shared.at(field!(Outer, inner)).at(field!(Inner, words));
        words.nth(4).write(9);
        words.nth(0).update(3);
        assert_eq!(words.iter().map(Shared::read).sum::<u32>(), 3 + 9 + 5);
        assert_eq!((shared.word(0), shared.word(1) as u32), (7, 1 | 2 << 16));
        assert!(!shared.has_words(&VALUE));
        shared.store(&VALUE);
        assert_eq!(memory, VALUE);
    }
}
