//! The driver of an interface and its active offloads, as `ethtool` shows them.
//!
//! Uses ioctl(2), which takes no capability. The netlink interface of ethtool (Linux 5.6) does not report drivers.

use std::{
    collections::BTreeSet,
    io,
    os::{fd::AsRawFd as _, unix::net::UnixDatagram},
};

use crate::kernel::interface_names::unescape;

// Of linux/ethtool.h and linux/sockios.h.
const SIOCETHTOOL: libc::Ioctl = 0x8946;
const GET_DRIVER_INFO: u32 = 0x03;
const GET_STRINGS: u32 = 0x1b;
const GET_SET_INFO: u32 = 0x37;
const GET_FEATURES: u32 = 0x3a;

/// `ETH_SS_FEATURES` of `enum ethtool_stringset`.
const FEATURES: u32 = 4;

/// Words of a string in a set, `ETH_GSTRING_LEN`.
const STRING_WORDS: usize = 8;

/// Words of `struct ethtool_drvinfo`, of which the driver's name is the first string.
const DRIVER_INFO_WORDS: usize = 49;

/// Features in a block of `struct ethtool_gfeatures`.
const BLOCK_FEATURES: usize = 32;

/// Returns the name of an interface's driver, or of its kind if it has none.
///
/// # Errors
/// If the interface does not exist, or its driver does not answer.
pub(crate) fn driver(interface: &str) -> io::Result<String> {
    let mut info = [0; DRIVER_INFO_WORDS];
    info[0] = GET_DRIVER_INFO;
    ask(interface, &mut info)?;
    Ok(text(&info[1..=STRING_WORDS]))
}

/// Returns the names of an interface's active features, in the kernel's own words.
///
/// # Errors
/// If the interface does not exist.
pub(crate) fn active_features(interface: &str) -> io::Result<BTreeSet<String>> {
    let names = feature_names(interface)?;
    let blocks = names.len().div_ceil(BLOCK_FEATURES);
    // A block has four words: what can be set, what is wanted, what is on, and what never changes.
    let mut answer = vec![0; 2 + 4 * blocks];
    answer[..2].copy_from_slice(&[GET_FEATURES, blocks as u32]);
    ask(interface, &mut answer)?;
    let is_on =
        |index: usize| answer[2 + index / BLOCK_FEATURES * 4 + 2] >> (index % BLOCK_FEATURES) & 1 == 1;
    Ok(names.into_iter().enumerate().filter(|(index, _)| is_on(*index)).map(|(_, name)| name).collect())
}

fn feature_names(interface: &str) -> io::Result<Vec<String>> {
    // The mask of sets has 64 bits. The answer adds the length of the set.
    let mut info = [GET_SET_INFO, 0, 1 << FEATURES, 0, 0];
    ask(interface, &mut info)?;
    let len = info[4];
    let mut strings = vec![0; 3 + len as usize * STRING_WORDS];
    strings[..3].copy_from_slice(&[GET_STRINGS, FEATURES, len]);
    ask(interface, &mut strings)?;
    Ok(strings[3..].chunks_exact(STRING_WORDS).map(text).collect())
}

/// Sends a command, which the answer overwrites. `command` must be as long as the answer will be.
fn ask(interface: &str, command: &mut [u32]) -> io::Result<()> {
    // Any socket will do, and this kind exists even without IP.
    let socket = UnixDatagram::unbound()?;
    // SAFETY: all zeroes is a valid request, for no interface.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    let name = unescape(interface);
    if name.len() >= request.ifr_name.len() {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    for (to, from) in request.ifr_name.iter_mut().zip(name) {
        *to = from as libc::c_char;
    }
    request.ifr_ifru.ifru_data = command.as_mut_ptr().cast();
    // SAFETY: the name ends with a zero, and the kernel writes no more than the command asks for, which has room.
    let result = unsafe { libc::ioctl(socket.as_raw_fd(), SIOCETHTOOL, &raw mut request) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Reads a string up to its zero.
fn text(words: &[u32]) -> String {
    let bytes = words.iter().flat_map(|word| word.to_ne_bytes());
    let bytes: Vec<u8> = bytes.take_while(|&byte| byte != 0).collect();
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loopback_has_features_and_what_is_no_interface_has_none() {
        let features = active_features("lo").unwrap();
        assert!(features.contains("loopback") && !features.contains("rx-lro"), "{features:?}");
        for name in ["", "no such thing", "a name that is too long"] {
            assert!(active_features(name).is_err() && driver(name).is_err(), "{name}");
        }
    }
}
