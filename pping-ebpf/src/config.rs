//! What the user asked for. The agent sets these before it loads the programs, so to the verifier they
//! are constants, and what they switch off costs nothing.

use aya_ebpf::Global;
use pping_common::{parse::Decap, rtt::Rules};

#[unsafe(no_mangle)]
static RULES: Global<Rules> = Global::new(Rules::UNLIMITED);

/// How often to record, and whether packets to this host are timed.
#[inline(always)]
pub(crate) fn rules() -> Rules {
    RULES.load()
}

#[unsafe(no_mangle)]
static DECAP: Global<Decap> = Global::new(Decap::NONE);

/// Which tunnels to look into.
#[inline(always)]
pub(crate) fn decap() -> Decap {
    DECAP.load()
}
