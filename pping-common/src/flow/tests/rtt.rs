//! One test per rule of measuring, named after its rule. Times are in ms.

mod connections;
mod forged;
mod icmp_echo;
mod limits;
mod locality;
mod pending;
mod properties;
mod quic;
mod quic_properties;
mod sent_again;
mod tcp_handshake;
mod tcp_options;
mod tcp_seq;
mod tcp_ts;
mod unusable_timestamps;
mod windows;
