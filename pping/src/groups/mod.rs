//! Groups: their labels and names, and the file that lists them.

mod directory;
mod file;
mod labels;
mod lookup;
mod names;

pub use directory::{
    Addresses, Directory, GroupPrefixes, LongestMatch, address_in, is_mistyped, without_extras,
};
pub use file::{Groups, check, load};
pub use labels::{ALL, Columns, Labels, OTHER, UNLISTED};
pub use lookup::Lookup;
pub use names::{GroupName, Names, QueueName, SeriesName};
