//! BPF maps that are mapped into memory, to read and write them without system calls.
//!
//! Each mapped page counts as memory of this process, so large maps are mapped in parts.

use std::{
    cell::OnceCell,
    io,
    marker::PhantomData,
    ops::Range,
    os::fd::{AsFd as _, AsRawFd as _, RawFd},
    ptr::{self, NonNull},
    sync::atomic::AtomicU32,
};

use aya::maps::{MapData, MapError};
use pping_common::shared::Shared;

/// An array map that can be mapped into memory (`BPF_F_MMAPABLE`, Linux 5.5). It keeps the map open, because programs
/// that are loaded later refer to it by its descriptor.
pub(super) struct Array<T> {
    map: MapData,
    len: usize,
    elements: PhantomData<fn() -> T>,
}

impl<T> Array<T> {
    /// An array of `len` elements `T`.
    pub(super) fn new(map: MapData, len: usize) -> Self {
        Self { map, len, elements: PhantomData }
    }

    /// Wraps a map with all its elements.
    pub(super) fn entire(map: MapData) -> Result<Self, MapError> {
        let len = map.info()?.max_entries() as usize;
        Ok(Self::new(map, len))
    }

    /// The number of elements.
    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// Maps a range of the elements, which ends with the array.
    pub(super) fn part(&self, elements: Range<usize>) -> io::Result<Elements<T>> {
        let descriptor = self.map.fd().as_fd().as_raw_fd();
        Elements::map(descriptor, elements.start..elements.end.min(self.len), None)
    }
}

/// An array that is mapped in parts of `LEN` elements, each when it is first used, and for good.
pub(super) struct Parts<T, const LEN: usize> {
    array: Array<T>,
    parts: Vec<OnceCell<Elements<T>>>,
}

impl<T, const LEN: usize> Parts<T, LEN> {
    /// Wraps an array, and maps no part yet.
    pub(super) fn new(array: Array<T>) -> Self {
        let parts = (0..array.len().div_ceil(LEN)).map(|_| OnceCell::new()).collect();
        Self { array, parts }
    }

    /// The number of elements.
    pub(super) fn len(&self) -> usize {
        self.array.len()
    }

    /// Returns an element; `None` beyond the end.
    pub(super) fn get(&self, index: usize) -> io::Result<Option<Shared<'_, T>>> {
        let (part, within) = (index / LEN, index % LEN);
        let Some(cell) = self.parts.get(part) else { return Ok(None) };
        if let Some(elements) = cell.get() {
            return Ok(elements.get(within));
        }
        let start = part * LEN;
        let elements = self.array.part(start..start + LEN)?;
        Ok(cell.get_or_init(|| elements).get(within))
    }
}

/// The mapped elements of an array.
///
/// The kernel programs write to them at any time, so elements are [`Shared`].
pub(super) struct Elements<T> {
    first: NonNull<T>,
    len: usize,
    mapping: NonNull<libc::c_void>,
    bytes: usize,
    /// Keeps the map open, if nothing else does.
    map: Option<MapData>,
}

// SAFETY: a shared mapping belongs to no thread, and its elements are `Shared`; a map may be sent.
unsafe impl<T> Send for Elements<T> {}

impl<T> Elements<T> {
    /// Maps the first `len` elements of an array of `T`, and keeps the map open.
    pub(super) fn new(map: MapData, len: usize) -> io::Result<Self> {
        let descriptor = map.fd().as_fd().as_raw_fd();
        Self::map(descriptor, 0..len, Some(map))
    }

    fn map(descriptor: RawFd, elements: Range<usize>, keeping: Option<MapData>) -> io::Result<Self> {
        // The kernel rounds each element up to 8 bytes, and maps whole pages, which are aligned to more than that.
        const { assert!(size_of::<T>().is_multiple_of(8) && align_of::<T>() <= 64) };
        // SAFETY: it takes no pointers.
        let page = unsafe { libc::sysconf(libc::_SC_PAGESIZE) } as usize;
        let start = elements.start * size_of::<T>();
        let (skipped, len) = (start % page, elements.len());
        let bytes = skipped + len * size_of::<T>();
        let access = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: a new mapping, whose address the kernel chooses.
        let mapping = unsafe {
            let offset = (start - skipped) as libc::off_t;
            libc::mmap(ptr::null_mut(), bytes, access, libc::MAP_SHARED, descriptor, offset)
        };
        if mapping == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let mapping = NonNull::new(mapping).ok_or(io::ErrorKind::AddrNotAvailable)?;
        // SAFETY: inside the mapping, and aligned: pages are, and elements are multiples of their alignment.
        let first = unsafe { mapping.byte_add(skipped) }.cast();
        Ok(Self { first, len, mapping, bytes, map: keeping })
    }

    /// Maps the same elements once more, for another thread. `None` if this does not keep its map open.
    pub(super) fn again(&self) -> Result<Option<Self>, MapError> {
        let Some(map) = &self.map else { return Ok(None) };
        let descriptor = map.fd().as_fd().try_clone_to_owned().map_err(MapError::IoError)?;
        let map = MapData::from_fd(descriptor)?;
        Self::new(map, self.len).map(Some).map_err(MapError::IoError)
    }

    /// The first element.
    pub(super) fn first(&self) -> Shared<'_, T> {
        // SAFETY: an element in the mapping, which lives as long as `self`. Programs and agent have the same type for it.
        unsafe { Shared::new(self.first.as_ptr()) }
    }

    /// Returns all elements in order.
    pub(super) fn iter(&self) -> impl Iterator<Item = Shared<'_, T>> {
        (0..self.len).filter_map(|index| self.get(index))
    }

    /// Returns an element; `None` beyond the end.
    pub(super) fn get(&self, index: usize) -> Option<Shared<'_, T>> {
        // SAFETY: an element in the mapping, which lives as long as `self`. Programs and agent have the same type for it.
        (index < self.len).then(|| unsafe { Shared::new(self.first.as_ptr().add(index)) })
    }
}

/// A word that agent and programs change at the same time, or in a certain order.
pub(super) fn atomic(word: Shared<'_, u32>) -> &AtomicU32 {
    // SAFETY: valid and aligned for as long, as `Shared::new` requires. It is only read and written by single instructions.
    unsafe { AtomicU32::from_ptr(word.as_ptr()) }
}

impl<T> Drop for Elements<T> {
    fn drop(&mut self) {
        // SAFETY: mapped by `map`, and no pointer outlives this.
        unsafe { libc::munmap(self.mapping.as_ptr(), self.bytes) };
    }
}
