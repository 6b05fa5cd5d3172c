#![no_std]
//! What pping's kernel programs and agent agree on.
