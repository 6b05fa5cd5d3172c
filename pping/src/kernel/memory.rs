//! Maps as memory: what is read and written without system calls.
//!
//! A mapping counts as memory of the process that has it, page by page, so what is large is mapped in parts.

use std::{
    cell::OnceCell,
    io,
    marker::PhantomData,
    ops::Range,
    os::fd::{AsFd as _, AsRawFd as _, RawFd},
    ptr::{self, NonNull},
};

use aya::maps::{MapData, MapError};

/// An array map that the kernel lets be mapped (`BPF_F_MMAPABLE`, Linux 5.5). Programs that are not loaded yet ask for it by its
/// descriptor.
pub(super) struct Array<T> {
    map: MapData,
    len: usize,
    elements: PhantomData<fn() -> T>,
}

impl<T> Array<T> {
    /// An array of `len` elements `T`.
    pub(super) fn of(map: MapData, len: usize) -> Self {
        Self { map, len, elements: PhantomData }
    }

    /// All elements that there are.
    pub(super) fn whole(map: MapData) -> Result<Self, MapError> {
        let len = map.info()?.max_entries() as usize;
        Ok(Self::of(map, len))
    }

    /// The number of elements.
    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// Maps some of the elements, as far as they are there.
    pub(super) fn part(&self, elements: Range<usize>) -> io::Result<Elements<T>> {
        let descriptor = self.map.fd().as_fd().as_raw_fd();
        Elements::map(descriptor, elements.start..elements.end.min(self.len), None)
    }
}

/// An array of which each part, of `LEN` elements, is mapped when it is asked for, and stays so.
pub(super) struct Parts<T, const LEN: usize> {
    array: Array<T>,
    parts: Vec<OnceCell<Elements<T>>>,
}

impl<T, const LEN: usize> Parts<T, LEN> {
    /// None of the parts yet.
    pub(super) fn of(array: Array<T>) -> Self {
        let parts = (0..array.len().div_ceil(LEN)).map(|_| OnceCell::new()).collect();
        Self { array, parts }
    }

    /// The number of elements.
    pub(super) fn len(&self) -> usize {
        self.array.len()
    }

    /// An element, if there is one. It is valid as long as `self`.
    pub(super) fn get(&self, index: usize) -> io::Result<Option<*mut T>> {
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

/// Elements of an array that are mapped.
///
/// The kernel programs write to them at any time, so there are no references to elements, only pointers.
pub(super) struct Elements<T> {
    first: NonNull<T>,
    len: usize,
    mapping: NonNull<libc::c_void>,
    bytes: usize,
    /// Keeps the map open, if nothing else does.
    _map: Option<MapData>,
}

// SAFETY: a shared mapping belongs to no thread, and is only accessed through pointers; a map may be sent.
unsafe impl<T> Send for Elements<T> {}

impl<T> Elements<T> {
    /// Maps `len` elements of an array whose values are `T`, for good.
    pub(super) fn of(map: MapData, len: usize) -> io::Result<Self> {
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
        Ok(Self { first, len, mapping, bytes, _map: keeping })
    }

    /// The number of elements.
    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// The first element. It is valid as long as `self`.
    pub(super) fn first(&self) -> *mut T {
        self.first.as_ptr()
    }

    /// All of them, in a row. They are valid as long as `self`.
    pub(super) fn iter(&self) -> impl Iterator<Item = *mut T> {
        (0..self.len).filter_map(|index| self.get(index))
    }

    /// An element. It is valid as long as `self`.
    pub(super) fn get(&self, index: usize) -> Option<*mut T> {
        // SAFETY: inside the mapping.
        (index < self.len).then(|| unsafe { self.first.as_ptr().add(index) })
    }
}

impl<T> Drop for Elements<T> {
    fn drop(&mut self) {
        // SAFETY: mapped by `map`, and no pointer outlives this.
        unsafe { libc::munmap(self.mapping.as_ptr(), self.bytes) };
    }
}
