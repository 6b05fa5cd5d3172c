//! Maps as memory: what is read and written without system calls.

use std::{
    io,
    os::fd::{AsFd as _, AsRawFd as _},
    ptr::NonNull,
};

use aya::maps::MapData;

/// The elements of an array map that the kernel lets be mapped (`BPF_F_MMAPABLE`, Linux 5.5).
///
/// The kernel programs write to them at any time, so there are no references to elements, only pointers.
pub(super) struct Elements<T> {
    start: NonNull<T>,
    len: usize,
    octets: usize,
    /// Programs that are not loaded yet ask for it by its descriptor.
    _map: Option<MapData>,
}

// SAFETY: a shared mapping belongs to no thread, and is only accessed through pointers; a map may be sent.
unsafe impl<T> Send for Elements<T> {}

impl<T> Elements<T> {
    /// Maps `len` elements of an array whose values are `T`.
    pub(super) fn of(map: MapData, len: usize) -> io::Result<Self> {
        // The kernel rounds each element up to 8 octets.
        const { assert!(size_of::<T>().is_multiple_of(8) && align_of::<T>() <= 8) };
        let octets = len * size_of::<T>();
        let descriptor = map.fd().as_fd().as_raw_fd();
        // SAFETY: a new mapping, of which the kernel chooses the place.
        let start = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                octets,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED,
                descriptor,
                0,
            )
        };
        if start == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let start = NonNull::new(start.cast()).ok_or(io::ErrorKind::AddrNotAvailable)?;
        Ok(Self { start, len, octets, _map: Some(map) })
    }

    /// As many elements of zeroes that no kernel program knows of.
    #[cfg(test)]
    pub(super) fn anonymous(len: usize) -> io::Result<Self> {
        let octets = len * size_of::<T>();
        let (access, flags) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
        // SAFETY: a new mapping, of which the kernel chooses the place.
        let start = unsafe { libc::mmap(std::ptr::null_mut(), octets, access, flags, -1, 0) };
        let start = NonNull::new(start.cast()).ok_or(io::ErrorKind::AddrNotAvailable)?;
        Ok(Self { start, len, octets, _map: None })
    }

    /// How many elements there are.
    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// The first element. It is valid as long as `self`.
    pub(super) fn first(&self) -> *mut T {
        self.start.as_ptr()
    }

    /// An element. It is valid as long as `self`.
    pub(super) fn get(&self, index: usize) -> Option<*mut T> {
        // SAFETY: inside the mapping.
        (index < self.len).then(|| unsafe { self.start.as_ptr().add(index) })
    }
}

impl<T> Drop for Elements<T> {
    fn drop(&mut self) {
        // SAFETY: mapped by `map`, and nobody has a pointer that outlives this.
        unsafe { libc::munmap(self.start.as_ptr().cast(), self.octets) };
    }
}
