//! How things are on this machine, for `pping check`. Nothing here changes anything.

pub(crate) mod ethtool;
pub(crate) mod links;
pub(crate) mod maps;
pub(crate) mod programs;
pub(crate) mod tc;
pub(crate) mod xdp;

use rtnetlink::{Handle, new_connection};

use crate::kernel::Error;

/// Connects to the kernel's routing socket.
///
/// # Errors
/// When the socket cannot be had.
pub(crate) fn connect() -> Result<Handle, Error> {
    let (connection, handle, _) = new_connection()?;
    tokio::spawn(connection);
    Ok(handle)
}
