//! Frames as they are built, as they are cut short, and as nobody should build them.

mod icmp;
mod ip;
mod link;
mod properties;
mod tcp;
mod truncation;
mod tunnel;
