//! A tun device and the file that is its other end.

use std::{
    fs::{File, OpenOptions},
    io,
    os::{fd::AsRawFd, unix::fs::OpenOptionsExt},
};

/// Makes a tun device in the namespace of the calling thread. It is there until the file is closed; what is
/// read and written are IP packets without a header before them.
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
