//! pping from the outside: its kernel programs in the kernel, its agent on interfaces, with witnesses.
//!
//! All of it needs root: the tests make network namespaces of their own, and traffic stays inside them.

mod agent;
mod end_to_end;
mod kernel;
