//! Groups: their labels and names, the file that lists them, and what comes by the socket beside it.

mod chunks;
mod columns;
#[cfg(feature = "live")]
mod connection;
mod directory;
mod file;
mod joined;
#[cfg(feature = "live")]
pub mod journal;
mod labels;
mod levels;
mod lookup;
mod names;
pub mod networks;
mod newest;
#[cfg(feature = "live")]
pub mod overlay;
#[cfg(feature = "live")]
pub mod protocol;
mod tree;
mod valid;

pub use columns::FileColumns;
#[cfg(feature = "live")]
pub use columns::merged;
#[cfg(feature = "live")]
pub use connection::Error as ConnectionError;
#[cfg(feature = "live")]
pub(crate) use connection::{AT_A_TIME, Connection};
pub use directory::{
    Addresses, Directory, GroupPrefixes, LongestMatch, address_in, is_mistyped, without_extras,
};
#[cfg(feature = "live")]
pub use file::open_stdin;
pub use file::{Groups, GroupsFile, PrefixRule, check, load, missing_levels, open};
pub use labels::{ALL, Columns, Labels, OTHER, UNLISTED};
pub use levels::{Levels, NO_VALUE, OTHER_NODES};
pub use lookup::Lookup;
#[cfg(test)]
pub(crate) use names::group_in_tree;
pub use names::{GroupName, Kind, Names, QueueName, SeriesName};
pub use networks::{NETWORK, Networks};
pub use newest::NewestLabels;
pub use tree::roll_up;
#[cfg(feature = "live")]
pub(crate) use valid::prefix;
