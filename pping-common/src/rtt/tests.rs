//! One test per rule of measuring, each named by its rule. Times are in ms.

mod icmp_echo;
mod limits;
mod locality;
mod model;
mod properties;
mod slots;
mod tcp_ts;
