//! Tests of parsing: valid, truncated and malformed frames.

mod dns;
mod fast_path;
mod icmp;
mod ip;
mod link;
mod mirror;
mod packet_id;
mod properties;
mod quic;
mod tcp;
mod truncation;
mod tunnel;
