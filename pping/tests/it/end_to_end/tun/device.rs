//! A tun device and the file at its other end.

use std::{
    fs::{File, OpenOptions},
    io,
    os::{fd::AsRawFd, unix::fs::OpenOptionsExt},
};

/// Creates a tun device in the network namespace of the calling thread, and returns a file that reads and writes its
/// bare IP packets. The device exists until the file is closed.
pub(super) fn open(name: &str) -> io::Result<File> {
    let path = "/dev/net/tun";
    let file = OpenOptions::new().read(true).write(true).custom_flags(libc::O_NONBLOCK).open(path)?;
    let mut request = libc::ifreq {
        ifr_name: [0; libc::IFNAMSIZ],
        ifr_ifru: libc::__c_anonymous_ifr_ifru { ifru_flags: (libc::IFF_TUN | libc::IFF_NO_PI) as _ },
    };
    assert!(name.len() < libc::IFNAMSIZ, "{name} is too long");
    for (to, from) in request.ifr_name.iter_mut().zip(name.bytes()) {
        *to = from as _;
    }
    // SAFETY: this request takes an `ifreq`, which outlives the call, with a name that ends with a zero.
    if unsafe { libc::ioctl(file.as_raw_fd(), libc::TUNSETIFF, &raw mut request) } != 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(file)
}
