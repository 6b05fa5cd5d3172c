//! Frames as they are built, as they are cut short, and as nobody should build them.

mod dns;
mod fast_path;
mod icmp;
mod ip;
mod link;
mod properties;
mod quic;
mod tcp;
mod truncation;
mod tunnel;
